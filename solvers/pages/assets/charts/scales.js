// Where a slider goes: the range of a value, and whether its places lie at equal ratios.

const PLACES = 1000; // of a slider from one end to the other
const ROUND = [1, 1.5, 2, 3, 4, 5, 6, 8, 10]; // ends of ranges

/** Return the scale of a value: from bounds where both are known, else around the value itself. */
function scaleOf(value, lower, upper) {
  const size = Math.abs(value);
  if (Number.isFinite(lower) && Number.isFinite(upper)) {
    return lower > 0 && upper / lower > 50 ? ratios(lower, upper) : differences(lower, upper);
  }
  if (value > 0 && lower >= 0) {
    return ratios(Math.max(lower, value / 10), Math.min(upper, value * 10));
  }
  if (size === 0) return differences(lower >= 0 ? 0 : -1, upper <= 0 ? 0 : 1);
  const decade = 10 ** Math.floor(Math.log10(2 * size));
  const reach = decade * ROUND.find((part) => part * decade >= 2 * size);
  const [least, greatest] = value > 0 ? [0, reach] : [-reach, 0];
  return differences(Math.max(lower, least), Math.min(upper, greatest));
}

function ratios(least, greatest) {
  const span = Math.log(greatest / least);
  return {
    least,
    greatest,
    logarithmic: true,
    place: (value) => (PLACES * Math.log(value / least)) / span,
    value: (place) => tidy(least * Math.exp((span * place) / PLACES), 3),
  };
}

function differences(least, greatest) {
  const span = greatest - least;
  const digits = Math.max(0, Math.min(12, 3 - Math.floor(Math.log10(span))));
  return {
    least,
    greatest,
    logarithmic: false,
    place: (value) => (PLACES * (value - least)) / span,
    value: (place) => Number((least + (span * place) / PLACES).toFixed(digits)),
  };
}

function tidy(value, digits) {
  return Number(value.toPrecision(digits));
}

/** Return a scale that holds a value, the same one if it does so already. */
function widened(scale, value) {
  if (value >= scale.least && value <= scale.greatest) return scale;
  const [least, greatest] = [Math.min(scale.least, value), Math.max(scale.greatest, value)];
  return scale.logarithmic && least > 0 ? ratios(least, greatest) : differences(least, greatest);
}

function clamped(number, [least, greatest]) {
  return Math.min(Math.max(number, least), greatest);
}

/** Return the last of ascending times that is not after a time: after a jump, where it is. */
function placeOf(times, time) {
  let low = 0;
  let high = times.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (times[middle] <= time) low = middle;
    else high = middle - 1;
  }
  return low;
}
