// Figures of step responses, by the rules of `flexure.step_info`, which tests compare with these.

const SHARE_OF_BAND = 0.1; // of the settling band, beyond which a record still moves
const FAR = 100; // records of the same length; rest beyond these is not in sight

/** Return the figures of a response as `flexure.step_info` gives them; NaN where one is lacking. */
function stepInfo(t, y, { at = t[0], initial = NaN, final = NaN, target = NaN, band = 0.02 } = {}) {
  const n = t.length;
  const y0 = Number.isNaN(initial) ? valueAt(t, y, at) : initial;
  const given = Number.isNaN(final) ? target : final;
  const known = !Number.isNaN(given);
  let yf = known ? given : y[n - 1];
  const change = yf - y0;
  const more = timeToRest(t, y, at, SHARE_OF_BAND * band * Math.abs(change));
  if (!Number.isFinite(change) || change === 0 || (more > 0 && !known)) yf = NaN;

  const share = y.map((value, i) => (t[i] >= at ? (value - y0) / (yf - y0) : NaN));
  const away = y.map((value) => (value - y0) / (yf - y0) - 1);
  const low = firstReach(t, share, 0.1) - at;
  const high = firstReach(t, share, 0.9) - at;
  let [peak, least] = [-1, Infinity];
  for (let i = 0; i < n; i++) {
    if (Number.isNaN(share[i])) continue;
    if (peak < 0 || share[i] > share[peak]) peak = i;
    least = Math.min(least, share[i]);
  }
  const has = Number.isFinite(yf) && peak >= 0;
  return {
    initial: y0,
    final: yf,
    rise_time: high - low,
    overshoot: has ? 100 * Math.max(0, share[peak] - 1) : NaN,
    undershoot: has ? 100 * Math.max(0, -least) : NaN,
    peak: has ? y[peak] : NaN,
    peak_time: has ? t[peak] - at : NaN,
    settling_time: remains(t, away, at, band) ? entered(t, away, at, band) - at : NaN,
    steady_state_error: target - y[n - 1],
    target,
    rise_start: low,
    rise_end: high,
    band,
    at,
    ...errorFigures(t, y, at, Number.isNaN(target) ? yf : target),
  };
}

/** Return the first place whose time is not before a time; the last one if there is none. */
function firstFrom(t, when) {
  let [low, high] = [0, t.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (t[middle] < when) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Return the value at a time, the one before where the record jumps. */
function valueAt(t, y, when) {
  const k = firstFrom(t, when);
  if (t[k] <= when || k === 0) return y[k];
  return y[k - 1] + ((when - t[k - 1]) / (t[k] - t[k - 1])) * (y[k] - y[k - 1]);
}

/** Return the least and the greatest value between two times. */
function rangeBetween(t, y, begin, end) {
  const ends = [valueAt(t, y, begin), valueAt(t, y, end)];
  let [least, greatest] = [Math.min(...ends), Math.max(...ends)];
  for (let i = firstFrom(t, begin); i < t.length && t[i] <= end; i++) {
    if (t[i] < begin) continue;
    least = Math.min(least, y[i]);
    greatest = Math.max(greatest, y[i]);
  }
  return [least, greatest];
}

function lastQuarters(t, y, at) {
  const end = t[t.length - 1];
  const [begin, middle] = [0.5, 0.75].map((part) => at + part * (end - at));
  return [rangeBetween(t, y, begin, middle), rangeBetween(t, y, middle, end)];
}

/** Return how long it takes until less than something small is to come; 0 if it is so now. */
function timeToRest(t, y, at, small) {
  const [before, now] = lastQuarters(t, y, at);
  const moved = now[1] - now[0];
  const ratio = moved / (before[1] - before[0]);
  const decays = ratio < 1;
  const toCome = decays ? (moved * ratio) / (1 - ratio) : Infinity;
  if (!(moved > small && toCome > small)) return 0;
  const quarters = decays ? Math.log(toCome / small) / -Math.log(ratio) : Infinity;
  return quarters > 4 * FAR ? Infinity : (quarters * (t[t.length - 1] - at)) / 4;
}

/** Tell whether a deviation is inside of the band at the end of the record, and will stay there. */
function remains(t, deviation, at, band) {
  const [before, now] = lastQuarters(t, deviation, at).map(([low, high]) => Math.max(-low, high));
  const lasting = now <= SHARE_OF_BAND * band || now ** 2 <= band * before;
  return Math.abs(deviation[t.length - 1]) <= band && lasting;
}

/** Return when a deviation that ends inside of the band enters it for the last time. */
function entered(t, deviation, at, band) {
  let last = t.length - 1;
  while (last >= 0 && !(Math.abs(deviation[last]) > band)) last--;
  if (last < 0) return t[firstFrom(t, at)];
  const level = Math.sign(deviation[last]) * band;
  return crossing(t, deviation, Math.min(last + 1, t.length - 1), level);
}

function firstReach(t, share, level) {
  const k = share.findIndex((value) => value >= level);
  return k < 0 ? NaN : crossing(t, share, k, level);
}

/** Return when a record crosses a level between a point and the one before. */
function crossing(t, values, k, level) {
  const before = Math.max(k - 1, 0);
  const [first, last] = [values[before], values[k]];
  const inside = k > 0 && !Number.isNaN(first) && first !== last;
  return t[before] + (inside ? (level - first) / (last - first) : 1) * (t[k] - t[before]);
}

/** Return the integrals of |e|, e² and (t - at) |e| from a time on; e = goal - y is straight. */
function errorFigures(t, y, at, goal) {
  const found = { iae: 0, ise: 0, itae: 0 };
  const add = (late, h, a, b) => {
    found.iae += (h * (a + b)) / 2;
    found.itae += (h / 2) * (a * (late + h / 3) + b * (late + (2 * h) / 3));
  };
  const k = firstFrom(t, at);
  let [time, e] = [at, goal - valueAt(t, y, at)];
  for (let i = k; i < t.length; i++) {
    const next = goal - y[i];
    const h = Math.max(t[i] - time, 0);
    found.ise += (h * (e * e + e * next + next * next)) / 3;
    if (e * next < 0) {
      const zero = (h * e) / (e - next);
      add(time - at, zero, Math.abs(e), 0);
      add(time - at + zero, h - zero, 0, Math.abs(next));
    } else add(time - at, h, Math.abs(e), Math.abs(next));
    [time, e] = [Math.max(t[i], at), next];
  }
  return found;
}
