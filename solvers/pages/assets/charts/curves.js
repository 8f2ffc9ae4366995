// Curves of the model over one of its inputs, with more points where they bend.

const FIRST_POINTS = 201;
const MOST_POINTS = 1600;
const ROUNDS = 12;
const BEND = 1e-3; // of the height of a curve, by which a point may be off the line beside it

/** Return what computes curves: `curve`s at points of an `axis`, and all of them at one point. */
function makeCurves(model, data) {
  const reader = model.signalReader(data.signalNames);
  const starts = new Map(data.signalNames.map((path, k) => [path, reader.starts[k]]));
  const places = new Map(model.info.inputs.map((input) => [input.path, input.at]));
  const out = new Float64Array(reader.size);
  const isTime = (axis) => axis.path === null;
  const placeOfAxis = (axis) => places.get(axis.path) + axis.component;

  /** Return a function that reads a curve, {parameters, inputs, time} being as given. */
  function evaluator({ parameters, inputs, time }) {
    const { x, env } = model.startingValues({ parameters, inputs });
    const fixed = Float64Array.from(env);
    return (curves, axis, at) => {
      const cache = new Map(); // by what is read with other inputs
      const read = (instead) => {
        const key = JSON.stringify(instead);
        if (!cache.has(key)) {
          env.set(fixed);
          const when = isTime(axis) ? at : time;
          if (!isTime(axis)) env[placeOfAxis(axis)] = at;
          const now = data.axes.map((each) => (isTime(each) ? when : env[placeOfAxis(each)]));
          for (const [k, constant, factor] of instead) {
            env[placeOfAxis(data.axes[k])] = constant + factor * now[k];
          }
          model.equations.prepare(env);
          reader.read(when, x, env, out);
          cache.set(key, Float64Array.from(out));
        }
        return cache.get(key);
      };
      return curves.map(({ reads }) =>
        reads.reduce((sum, { signal, component, factor, instead }) => {
          const value = factor * read(instead)[starts.get(signal) + component];
          return sum === null ? value : sum + value;
        }, null),
      );
    };
  }

  /** Return {x, rows}: points of an axis, and the values of the curves there, curve by curve. */
  function sampled(values, curves, axis, [first, last]) {
    const evaluate = evaluator(values);
    let xs = Array.from({ length: FIRST_POINTS }, (_, k) => first + ((last - first) * k) / (FIRST_POINTS - 1));
    xs[FIRST_POINTS - 1] = last;
    let rows = xs.map((x) => evaluate(curves, axis, x));
    for (let round = 0; round < ROUNDS && xs.length < MOST_POINTS; round++) {
      const bent = bentPlaces(xs, rows);
      if (!bent.some(Boolean)) break;
      const [nextXs, nextRows] = [[xs[0]], [rows[0]]];
      for (let k = 1; k < xs.length; k++) {
        const middle = 0.5 * (xs[k - 1] + xs[k]);
        const room = nextXs.length + xs.length - k < MOST_POINTS;
        if (bent[k] && room && middle > xs[k - 1] && middle < xs[k]) {
          nextXs.push(middle);
          nextRows.push(evaluate(curves, axis, middle));
        }
        nextXs.push(xs[k]);
        nextRows.push(rows[k]);
      }
      [xs, rows] = [nextXs, nextRows];
    }
    return { x: xs, rows: curves.map((_, c) => rows.map((row) => row[c])) };
  }
  return { evaluator, sampled };
}

/** Tell for each interval, named by its end, whether a curve bends at one of its ends. */
function bentPlaces(xs, rows) {
  const bent = new Array(xs.length).fill(false);
  for (let c = 0; c < rows[0].length; c++) {
    let [least, greatest] = [Infinity, -Infinity];
    for (const row of rows) {
      if (Number.isFinite(row[c])) [least, greatest] = [Math.min(least, row[c]), Math.max(greatest, row[c])];
    }
    const most = BEND * (greatest - least);
    if (!(most > 0)) continue;
    for (let k = 1; k < xs.length - 1; k++) {
      const share = (xs[k] - xs[k - 1]) / (xs[k + 1] - xs[k - 1]);
      const straight = rows[k - 1][c] + share * (rows[k + 1][c] - rows[k - 1][c]);
      const off = Math.abs(rows[k][c] - straight);
      if (off > most || Number.isNaN(off) !== Number.isNaN(rows[k][c])) bent[k] = bent[k + 1] = true;
    }
  }
  return bent;
}

/** List the places of the least values of a row, where it is lower than beside. */
function wells(x, y) {
  const found = [];
  const height = Math.max(...y.filter(Number.isFinite)) - Math.min(...y.filter(Number.isFinite));
  for (let k = 1; k < y.length - 1; k++) {
    let end = k;
    while (end < y.length - 1 && y[end + 1] === y[k]) end++;
    if (y[k - 1] > y[k] && end < y.length - 1 && y[end + 1] > y[end]) {
      const middle = end > k ? 0.5 * (x[k] + x[end]) : vertex(x, y, k);
      found.push({ x: middle, y: y[k], from: x[k], to: x[end], deep: Math.min(Math.max(...y.slice(0, k)), Math.max(...y.slice(end))) - y[k] });
    }
    k = end;
  }
  return found.filter((each) => each.deep > 1e-6 * height);
}

/** Return where the parabola through three points has its end. */
function vertex(x, y, k) {
  const [a, b] = [x[k] - x[k - 1], x[k] - x[k + 1]];
  const [p, q] = [a * (y[k] - y[k + 1]), b * (y[k] - y[k - 1])];
  const bottom = 2 * (p - q);
  return bottom === 0 ? x[k] : x[k] - (a * p - b * q) / bottom;
}
