// Figures of step responses, by the rules of `flexure.step_info`, which tests compare with these.
//
// A response is known in pieces of time, {begin, end, values}: by its values at five nodes of each,
// -1, -√½, 0, √½ and 1, through which a polynomial goes. An arc is a part of a piece in which the
// response only rises or only falls, {c, begin, end, z0, z1, t0, t1, y0, y1}: extremes are ends of
// arcs, and a level is crossed once in an arc. c are the coefficients of the powers of z.

const SHARE_OF_BAND = 0.1; // of the settling band, beyond which a response still moves
const FAR = 100; // records of the same length; rest beyond these is not in sight
const ROUNDING = 1e-14; // of the whole way, in its extremes
const FLAT = 8 * Number.EPSILON; // the part of a value below which nothing turns
// Places of the rule of Gauss with five places, those that are not negative, and their weights.
const GAUSS = [0, 0.5384693101056831, 0.906179845938664];
const GAUSS_WEIGHTS = [0.5688888888888889, 0.47862867049936647, 0.23692688505618908];

/** Return the figures of a response as `flexure.step_info` gives them; NaN where one is lacking. */
function stepInfo(pieces, { at, initial = NaN, final = NaN, target = NaN, band = 0.02 } = {}) {
  const arcs = arcsOf(pieces);
  const [start, stop, last] = [arcs[0].t0, arcs.at(-1).t1, arcs.at(-1).y1];
  at ??= start;
  const y0 = Number.isNaN(initial) ? valueBefore(arcs, at) : initial;
  const given = Number.isNaN(final) ? target : final;
  const known = !Number.isNaN(given);
  let yf = known ? given : last;
  const change = Math.abs(yf - y0);
  const quarters = lastQuarters(arcs, at, stop);
  const more = timeToRest(quarters, stop - at, SHARE_OF_BAND * band * change);
  const isKnown = arcs.every((arc) => Number.isFinite(arc.y0) && Number.isFinite(arc.y1));
  if (!isKnown || !(change > 0 && change < Infinity) || (more > 0 && !known)) yf = NaN;

  const since = from(arcs, at);
  const width = band * Math.abs(yf - y0);
  const settles = remains(quarters, last, yf, width);
  const [low, high] = [0.1, 0.9].map((share) => firstReach(since, y0, yf, share) - at);
  const { most, least, time, value } = extremes(since, y0, yf);
  const has = Number.isFinite(yf);
  const percent = (share) => (has ? (share <= ROUNDING ? 0 : 100 * share) : NaN);
  return {
    initial: y0,
    final: yf,
    rise_time: high - low,
    overshoot: percent(most - 1),
    undershoot: percent(-least),
    peak: has ? value : NaN,
    peak_time: has ? time - at : NaN,
    settling_time: settles ? entered(since, at, yf, width) - at : NaN,
    steady_state_error: target - last,
    target,
    rise_start: low,
    rise_end: high,
    band,
    at,
    ...errorFigures(since, at, Number.isNaN(target) ? yf : target),
  };
}

/** Return the arcs of all pieces. */
function arcsOf({ begin, end, values }) {
  return Array.from(begin).flatMap((_, k) => {
    const v = values.subarray(5 * k, 5 * k + 5);
    const c = coefficients(v);
    const piece = { c, begin: begin[k], end: end[k] };
    const ends = [-1, ...turnsOf(c, v), 1];
    return ends.slice(1).map((z1, i) => {
      const z0 = ends[i];
      const arc = { ...piece, z0, z1, t0: timeOf(piece, z0), t1: timeOf(piece, z1) };
      arc.y0 = z0 === -1 ? v[0] : horner(c, z0);
      arc.y1 = z1 === 1 ? v[4] : horner(c, z1);
      return arc;
    });
  });
}

/** Return the coefficients of the polynomial through values at the nodes. */
function coefficients([first, second, middle, fourth, last]) {
  const [a, b] = [0.5 * (last + first) - middle, 0.5 * (fourth + second) - middle];
  const [p, q] = [0.5 * (last - first), (0.5 * (fourth - second)) / Math.SQRT1_2];
  return [middle, 2 * q - p, 4 * b - a, 2 * (p - q), 2 * a - 4 * b];
}

/** Return where a piece turns. */
function turnsOf(c, values) {
  const [first, ...others] = slopesOf(c);
  const more = others.reduce((sum, each) => sum + Math.abs(each), 0);
  const size = Math.max(...values.map(Math.abs));
  return Math.abs(first) <= more && more > FLAT * size ? zerosOf([first, ...others]) : [];
}

function slopesOf(c) {
  return c.slice(1).map((each, k) => (k + 1) * each);
}

function horner(c, z) {
  return c.reduceRight((sum, each) => each + z * sum, 0);
}

/** Return where a polynomial changes its sign between -1 and 1, ascending. */
function zerosOf(c) {
  if (c.length < 2) return [];
  const edges = [-1, ...zerosOf(slopesOf(c)), 1];
  const isAbove = edges.map((z) => horner(c, z) > 0);
  return edges.slice(1).flatMap((z, k) => {
    if (isAbove[k] === isAbove[k + 1]) return [];
    const zero = zeroBetween(c, edges[k], z);
    return Math.abs(zero) < 1 ? [zero] : [];
  });
}

/** Return where a polynomial is zero that changes its sign once between two places. */
function zeroBetween(c, low, high) {
  const rises = horner(c, high) > horner(c, low);
  for (;;) {
    const middle = 0.5 * (low + high);
    if (middle <= low || middle >= high) return middle;
    if (horner(c, middle) > 0 === rises) high = middle;
    else low = middle;
  }
}

function timeOf({ begin, end }, z) {
  return z === 1 ? end : begin + (end - begin) * (0.5 * (z + 1));
}

/** Return the place of a time in an arc, not beyond its ends. */
function placeIn({ begin, end, z0, z1, t1 }, time) {
  return time >= t1 ? z1 : Math.min(Math.max((2 * (time - begin)) / (end - begin) - 1, z0), z1);
}

function valueIn({ c, z0, z1, y0, y1 }, z) {
  if (z === z0) return y0;
  return z === z1 ? y1 : horner(c, z);
}

/** Return the value at a time, the one before where the response jumps. */
function valueBefore(arcs, time) {
  const arc = arcs.findLast((each) => each.t0 < time) ?? arcs[0];
  return valueIn(arc, placeIn(arc, time));
}

/** Return what arcs are from a time on, after a jump there. */
function from(arcs, time) {
  const found = arcs.filter((arc) => arc.t1 > time);
  if (found.length === 0) found.push(arcs.at(-1));
  const [first] = found;
  if (!(time > first.t0)) return found;
  const z0 = placeIn(first, time);
  found[0] = { ...first, z0, t0: Math.min(time, first.t1), y0: valueIn(first, z0) };
  return found;
}

/** Return the least and the greatest value between two times. */
function rangeBetween(arcs, begin, end) {
  const inside = arcs.filter((arc) => arc.t0 >= begin && arc.t1 <= end);
  let [least, greatest] = [Infinity, -Infinity];
  const ends = [valueBefore(arcs, begin), valueBefore(arcs, end)];
  for (const value of [...ends, ...inside.flatMap(({ y0, y1 }) => [y0, y1])]) {
    least = Math.min(least, value);
    greatest = Math.max(greatest, value);
  }
  return [least, greatest];
}

function lastQuarters(arcs, at, stop) {
  const [begin, middle] = [0.5, 0.75].map((part) => at + part * (stop - at));
  return [rangeBetween(arcs, begin, middle), rangeBetween(arcs, middle, stop)];
}

/** Return how long it takes until less than something small is to come; 0 if it is so now. */
function timeToRest([before, now], length, small) {
  const moved = now[1] - now[0];
  const ratio = moved / (before[1] - before[0]);
  const decays = ratio < 1;
  const toCome = decays ? (moved * ratio) / (1 - ratio) : Infinity;
  if (!(moved > small && toCome > small)) return 0;
  const quarters = decays ? Math.log(toCome / small) / -Math.log(ratio) : Infinity;
  return quarters > 4 * FAR ? Infinity : (quarters * length) / 4;
}

/** Tell whether a response is inside of the band around a goal at its end, and will stay there. */
function remains(quarters, last, goal, band) {
  const [before, now] = quarters.map(([least, most]) => Math.max(goal - least, most - goal));
  const lasting = now <= SHARE_OF_BAND * band || now ** 2 <= band * before;
  return Math.abs(last - goal) <= band && lasting;
}

/** Return when a response that ends inside of the band enters it for the last time. */
function entered(arcs, at, goal, band) {
  const [low, high] = [goal - band, goal + band];
  const isOutside = (value) => value < low || value > high;
  const arc = arcs.findLast(({ y0, y1 }) => isOutside(y0) || isOutside(y1));
  if (arc === undefined) return at;
  return isOutside(arc.y1) ? arc.t1 : crossing(arc, arc.y0 > high ? high : low);
}

/** Return the greatest and the least share of the way, and when and with which value it is there. */
function extremes(arcs, y0, yf) {
  let [most, least, time, value] = [-Infinity, Infinity, NaN, NaN];
  for (const arc of arcs) {
    for (const [t, y] of [[arc.t0, arc.y0], [arc.t1, arc.y1]]) {
      const share = (y - y0) / (yf - y0);
      if (share > most) [most, time, value] = [share, t, y];
      least = Math.min(least, share);
    }
  }
  return { most, least, time, value };
}

/** Return when a share of the way is reached first. */
function firstReach(arcs, y0, yf, level) {
  const reaches = (y) => (y - y0) / (yf - y0) >= level;
  const arc = arcs.find((each) => reaches(each.y0) || reaches(each.y1));
  if (arc === undefined) return NaN;
  return reaches(arc.y0) ? arc.t0 : crossing(arc, y0 + level * (yf - y0));
}

/** Return when an arc crosses a level. */
function crossing(arc, level) {
  const { c, z0, z1, y0, y1, t1 } = arc;
  const isWithin = Math.min(y0, y1) <= level && level <= Math.max(y0, y1);
  return isWithin && level !== y1 ? timeOf(arc, zeroBetween(lifted(c, -level), z0, z1)) : t1;
}

/** Return a polynomial with a number added to it. */
function lifted([first, ...others], by) {
  return [first + by, ...others];
}

/** Return the integrals of |e|, e² and (t - at) |e| from a time on; e = goal - y. */
function errorFigures(arcs, at, goal) {
  const found = { iae: 0, ise: 0, itae: 0 };
  for (const arc of arcs) {
    const e = lifted(arc.c, -goal);
    const changes = (arc.y0 - goal) * (arc.y1 - goal) < 0;
    const zero = changes ? [zeroBetween(e, arc.z0, arc.z1)] : [];
    const ends = [arc.z0, ...zero, arc.z1];
    const scale = 0.5 * (arc.end - arc.begin);
    for (let k = 1; k < ends.length; k++) {
      const half = 0.5 * (ends[k] - ends[k - 1]);
      const middle = 0.5 * (ends[k] + ends[k - 1]);
      for (let g = -2; g <= 2; g++) {
        const z = middle + half * Math.sign(g) * GAUSS[Math.abs(g)];
        const weight = scale * half * GAUSS_WEIGHTS[Math.abs(g)];
        const value = horner(e, z);
        found.iae += weight * Math.abs(value);
        found.ise += weight * value * value;
        found.itae += weight * (timeOf(arc, z) - at) * Math.abs(value);
      }
    }
  }
  return found;
}
