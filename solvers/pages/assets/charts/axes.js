// Axes of charts: from numbers to pixels and back, and where ticks are.

const STEPS = [1, 2, 5, 10];
const NEAR = 0.1; // pixels, by which a line may be off its points

/** Return the scale of an axis, whose range goes over pixels, with equal ratios if it asks for it. */
function axisScale([first, last], [low, high], logarithmic = false) {
  const [bend, back] = logarithmic ? [Math.log10, (u) => 10 ** u] : [(u) => u, (u) => u];
  const begin = bend(first);
  const factor = (high - low) / (bend(last) - begin || 1);
  return {
    range: [first, last],
    logarithmic,
    place: (value) => low + (bend(value) - begin) * factor,
    value: (pixel) => back(begin + (pixel - low) / factor),
  };
}

/** Return the ticks of a scale, at most about as many as are wanted: [{value, text}]. */
function ticksOf({ range: [first, last], logarithmic }, most) {
  if (logarithmic && last / first >= 10) return decades(first, last, most);
  const least = (last - first) / Math.max(most, 1);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = power * STEPS.find((each) => each * power >= 0.999 * least);
  if (!(step > 0 && Number.isFinite(step))) return [];
  const begin = Math.ceil(first / step - 1e-9);
  const count = Math.floor(last / step + 1e-9) - begin + 1;
  const values = Array.from({ length: Math.max(0, count) }, (_, k) => (begin + k) * step);
  return values.map((value) => ({ value, text: tickText(value, step) }));
}

function decades(first, last, most) {
  const [low, high] = [Math.ceil(Math.log10(first) - 1e-9), Math.floor(Math.log10(last) + 1e-9)];
  const stride = Math.max(1, Math.ceil((high - low + 1) / most));
  const parts = high - low < most / 3 ? [1, 2, 5] : [1];
  const powers = Array.from({ length: high - low + 2 }, (_, k) => low - 1 + k);
  return powers
    .filter((power) => (power - low) % stride === 0)
    .flatMap((power) => parts.map((part) => Number(`${part}e${power}`)))
    .filter((value) => value >= first * (1 - 1e-9) && value <= last * (1 + 1e-9))
    .map((value) => ({ value, text: format(value) }));
}

/** Write the number of a tick with as many digits as its step needs. */
function tickText(value, step) {
  if (Math.abs(value) < 1e-9 * step) return "0";
  const digits = Math.floor(Math.log10(Math.abs(value)) + 1e-9) - Math.floor(Math.log10(step) + 1e-9);
  return format(value, Math.min(Math.max(digits + 1, 1), 12));
}

/** Return the range of an axis that holds numbers, {least, greatest}, with some room beside them. */
function rangeFor({ least, greatest }, logarithmic) {
  if (!(least <= greatest)) return logarithmic ? [0.1, 10] : [-1, 1];
  if (logarithmic) {
    const share = Math.max((greatest / least) ** 0.055, 1.1);
    return [least / share, greatest * share];
  }
  const size = Math.max(Math.abs(least), Math.abs(greatest));
  const room = greatest - least > 1e-12 * size ? 0.055 * (greatest - least) : 0.5 * size || 1;
  return [least - room, greatest + room];
}

/** Return the first and the last index of ascending places that a range shows, and one beside it. */
function indicesIn(x, [first, last]) {
  if (x.length === 0) return [0, -1];
  let begin = placeOf(x, first);
  while (begin > 0 && x[begin - 1] >= first) begin--; // both values of a jump
  return [begin, Math.min(placeOf(x, last) + 1, x.length - 1)];
}

/** Return the least and the greatest value that lines have in a range. */
function extentOf(lines, range, logarithmic) {
  let [least, greatest] = [Infinity, -Infinity];
  for (const { x, y, fill, held } of lines) {
    const [begin, end] = indicesIn(x, range);
    for (let k = begin; k <= end; k++) {
      const isBeside = (x[k] < range[0] || x[k] > range[1]) && end - begin > 1;
      if (isBeside && !(held && k === begin)) continue;
      const value = y[k];
      if (!Number.isFinite(value) || (logarithmic && value <= 0)) continue;
      if (value < least) least = value;
      if (value > greatest) greatest = value;
    }
    if (fill) [least, greatest] = [Math.min(least, 0), Math.max(greatest, 0)];
  }
  return { least, greatest };
}

/** Return the value of a line at a place, linear between its points; NaN outside. */
function heightAt({ x, y, held }, place) {
  if (!(place >= x[0] && place <= x[x.length - 1])) return NaN;
  const k = placeOf(x, place);
  const next = Math.min(k + 1, x.length - 1);
  const share = held || !(x[next] > x[k]) ? 0 : (place - x[k]) / (x[next] - x[k]);
  return share === 0 ? y[k] : y[k] + share * (y[next] - y[k]); // which may be infinite
}

/** Write a line as the path of an SVG, with as few points as draw it. */
function lineText({ x, y, held, fill }, across, down, width) {
  const [begin, end] = indicesIn(x, across.range);
  const shown = end - begin > 4 * width ? thinned(x, y, begin, end, across) : null;
  const count = shown === null ? end - begin + 1 : shown.length;
  const tenth = (pixels) => Math.round(10 * pixels) / 10;
  let [text, first, last] = ["", NaN, NaN];
  let pen = null; // where the line has come to, as {u, v}
  let next = null; // the last of the points after that which lie on one straight line
  let [low, high] = [0, 0]; // slopes of lines that pass all of these near enough
  const flush = () => {
    if (next !== null) text += held ? `H${tenth(next.u)}V${tenth(next.v)}` : `L${tenth(next.u)} ${tenth(next.v)}`;
    [pen, next] = [next ?? pen, null];
  };
  for (let i = 0; i < count; i++) {
    const k = shown === null ? begin + i : shown[i];
    const [u, v] = [across.place(x[k]), clamped(down.place(y[k]), [-1e4, 1e4])];
    if (!Number.isFinite(v)) {
      flush();
      pen = null;
      continue;
    }
    if (Number.isNaN(first)) first = u;
    last = u;
    if (pen === null) {
      text += `M${tenth(u)} ${tenth(v)}`;
      pen = { u, v };
      continue;
    }
    const isOnLine = next !== null && (held ? v === next.v && v === pen.v : v >= pen.v + low * (u - pen.u) && v <= pen.v + high * (u - pen.u));
    if (!isOnLine) {
      flush();
      [low, high] = u > pen.u ? [-Infinity, Infinity] : [NaN, NaN];
    }
    next = { u, v };
    low = Math.max(low, (v - NEAR - pen.v) / (u - pen.u));
    high = Math.min(high, (v + NEAR - pen.v) / (u - pen.u));
  }
  flush();
  if (held && text.lastIndexOf("M") === 0 && !/[HL]/.test(text)) text += "h1"; // one value only
  const ground = fill && text ? tenth(down.place(0)) : null;
  return { text, below: ground === null ? null : `${text}L${tenth(last)} ${ground}L${tenth(first)} ${ground}Z` };
}

/** Return which points of a line to draw: of each pixel the first, the last and the extreme ones. */
function thinned(x, y, begin, end, across) {
  const found = [];
  let [column, low, high, first] = [NaN, 0, 0, 0];
  const close = (last) => found.push(...[...new Set([first, low, high, last])].sort((a, b) => a - b));
  for (let k = begin; k <= end; k++) {
    const now = Math.floor(across.place(x[k]));
    if (now !== column || !Number.isFinite(y[k])) {
      if (k > begin) close(k - 1);
      [column, low, high, first] = [now, k, k, k];
    }
    if (y[k] < y[low]) low = k;
    if (y[k] > y[high]) high = k;
  }
  close(end);
  return found;
}
