// The loop gain of controllers at the end of a run, over frequency, from Jacobians of the model.
//
// With A the Jacobian of the closed loop, and A0 that with all gains of its controller at zero, by
// which the loop is open, the return difference is 1 + L(s) = det(s I - A) / det(s I - A0).

const [LOWEST, HIGHEST, PLACES_OF_BODE] = [1e-4, 1e6, 401]; // in rad/s
const SQUARINGS = 45; // of a matrix, after which its eigenvalues count as on the unit circle
const [TURN, RATIO, HALVINGS] = [0.2, 1.3, 12]; // in rad, of gains: larger steps are halved, so many times
const ROUNDS = 80; // of Aberth's iteration, at most
const SHOWN = 1e4; // gains between this and its inverse are shown

/** Return the logarithm and the angle of the determinant of s I - A at s = σ + j ω. */
function determinantAt(omega, { size, entries }, sigma = 0) {
  const [re, im] = [entries.map((each) => -each), new Float64Array(size * size)];
  for (let k = 0; k < size; k++) {
    re[k * size + k] += sigma;
    im[k * size + k] = omega;
  }
  let [log, angle] = [0, 0];
  for (let k = 0; k < size; k++) {
    let pivot = k;
    for (let i = k + 1; i < size; i++) {
      const [now, best] = [i, pivot].map((row) => Math.hypot(re[row * size + k], im[row * size + k]));
      if (now > best) pivot = i;
    }
    if (pivot !== k) {
      angle += Math.PI;
      for (const part of [re, im]) {
        for (let j = k; j < size; j++) {
          const [a, b] = [k * size + j, pivot * size + j];
          [part[a], part[b]] = [part[b], part[a]];
        }
      }
    }
    const [p, q] = [re[k * size + k], im[k * size + k]];
    const square = p * p + q * q;
    log += 0.5 * Math.log(square);
    angle += Math.atan2(q, p);
    for (let i = k + 1; i < size; i++) {
      const [a, b] = [re[i * size + k], im[i * size + k]];
      if (a === 0 && b === 0) continue;
      const [c, d] = [(a * p + b * q) / square, (b * p - a * q) / square];
      for (let j = k; j < size; j++) {
        const [u, v] = [re[k * size + j], im[k * size + j]];
        re[i * size + j] -= c * u - d * v;
        im[i * size + j] -= c * v + d * u;
      }
    }
  }
  return [log, angle];
}

/** Return the frequencies |Im λ| of the eigenvalues λ of a matrix, by Aberth's iteration.
 *
 * It begins along the imaginary axis, and takes the slope of log det(s I - A) by differences.
 */
function frequenciesOf(matrix) {
  const { size } = matrix;
  const roots = Array.from({ length: size }, (_, k) => {
    const radius = LOWEST * (HIGHEST / LOWEST) ** ((k + 0.5) / size);
    return [-0.3 * radius, k % 2 ? radius : -radius];
  });
  for (let round = 0; round < ROUNDS; round++) {
    let largest = 0;
    for (const root of roots) {
      const [x, y] = root;
      const h = 1e-6 * Math.hypot(x, y) + 1e-12;
      const [[a, p], [b, q]] = [x - h, x + h].map((each) => determinantAt(y, matrix, each));
      let [u, v] = [(b - a) / (2 * h), Math.atan2(Math.sin(q - p), Math.cos(q - p)) / (2 * h)];
      for (const [c, d] of roots) {
        const square = (x - c) ** 2 + (y - d) ** 2;
        if (square > 0) [u, v] = [u - (x - c) / square, v + (y - d) / square];
      }
      const size2 = u * u + v * v;
      const step = [u / size2, -v / size2];
      if (!step.every(Number.isFinite)) continue;
      [root[0], root[1]] = [x - step[0], y - step[1]];
      largest = Math.max(largest, Math.hypot(...step) / (Math.hypot(x, y) + LOWEST));
    }
    if (largest < 1e-6) break;
  }
  return roots.map(([, y]) => Math.abs(y)).filter((omega) => omega > LOWEST && omega < HIGHEST);
}

/** Tell whether all eigenvalues of a matrix have negative real parts.
 *
 * Cayley's transform takes these into the unit circle, where powers of a matrix vanish.
 */
function decays({ size, entries }) {
  const sums = Array.from({ length: size }, (_, i) =>
    entries.subarray(i * size, (i + 1) * size).reduce((sum, each) => sum + Math.abs(each), 0),
  );
  const half = 1 / (Math.max(...sums) || 1);
  const unit = (k) => (k % (size + 1) === 0 ? 1 : 0);
  let power = solved(entries.map((each, k) => unit(k) - half * each), entries.map((each, k) => unit(k) + half * each), size);
  for (let squaring = 0; squaring < SQUARINGS; squaring++) {
    const next = new Float64Array(size * size);
    for (let i = 0; i < size; i++) {
      for (let k = 0; k < size; k++) {
        const factor = power[i * size + k];
        for (let j = 0; j < size; j++) next[i * size + j] += factor * power[k * size + j];
      }
    }
    power = next;
    const largest = power.reduce((most, each) => Math.max(most, Math.abs(each)), 0);
    if (!(largest < 1e12)) return false;
    if (largest < 1e-12) return true;
  }
  return false;
}

/** Return the solution of linear equations, whose right sides are the columns of a matrix. */
function solved(matrix, sides, size) {
  const [a, b] = [matrix, sides];
  for (let k = 0; k < size; k++) {
    let pivot = k;
    for (let i = k + 1; i < size; i++) {
      if (Math.abs(a[i * size + k]) > Math.abs(a[pivot * size + k])) pivot = i;
    }
    for (let j = 0; j < size; j++) {
      for (const each of [a, b]) {
        [each[k * size + j], each[pivot * size + j]] = [each[pivot * size + j], each[k * size + j]];
      }
    }
    for (let i = 0; i < size; i++) {
      const factor = i === k ? 0 : a[i * size + k] / a[k * size + k];
      if (factor === 0) continue;
      for (let j = 0; j < size; j++) {
        a[i * size + j] -= factor * a[k * size + j];
        b[i * size + j] -= factor * b[k * size + j];
      }
    }
  }
  return b.map((each, k) => each / a[Math.floor(k / size) * (size + 1)]);
}

/** Return {omega, gain, phase, sensitivity, isStable} of a loop with values, at a state and time. */
function loopOf({ gains }, { values, result }, model, data, app) {
  const { parameters, inputs } = requestOf(values, data, app);
  const zeros = Object.fromEntries(gains.map((path) => [path, parameters[path].map(() => 0)]));
  const at = { time: result.time[result.time.length - 1], state: [...result.state], inputs };
  const [closed, open] = [parameters, { ...parameters, ...zeros }].map((each) =>
    denseOf(model.evaluate({ ...at, parameters: each }).jacobian, result.state.length),
  );
  const placeAt = (omega) => {
    const [[a, p], [b, q]] = [closed, open].map((each) => determinantAt(omega, each));
    const size = Math.exp(a - b);
    const [x, y] = [size * Math.cos(p - q) - 1, size * Math.sin(p - q)];
    return { omega, gain: Math.hypot(x, y), angle: Math.atan2(y, x), sensitivity: 1 / size, back: p - q };
  };
  const grid = Array.from({ length: PLACES_OF_BODE }, (_, k) => LOWEST * (HIGHEST / LOWEST) ** (k / (PLACES_OF_BODE - 1)));
  const all = new Set([...grid, ...frequenciesOf(closed), ...frequenciesOf(open)]); // a pole beside a zero, too
  let places = [...all].sort((one, other) => one - other).map(placeAt);
  for (let halving = 0; halving < HALVINGS; halving++) {
    places = places.flatMap((each, k) => (k > 0 && isFar(places[k - 1], each) ? [placeAt(Math.sqrt(places[k - 1].omega * each.omega)), each] : [each]));
  }
  const found = { omega: [], gain: [], phase: [], sensitivity: [], isStable: decays(closed) };
  let [turns, last] = [0, null];
  for (const { omega, gain, angle, sensitivity } of places) {
    if (last === null) turns = angle > Math.PI / 2 ? -1 : 0;
    else if (Math.abs(angle - last) > Math.PI) turns += angle > last ? -1 : 1;
    last = angle;
    found.omega.push(omega);
    found.gain.push(gain);
    found.phase.push((180 / Math.PI) * (angle + 2 * Math.PI * turns));
    found.sensitivity.push(sensitivity);
  }
  return found;
}

/** Tell whether a loop gain L that is shown, or 1 + L, changes much between places, as at a resonance. */
function isFar(some, other) {
  if (Math.max(some.gain, other.gain) < 1 / SHOWN || Math.min(some.gain, other.gain) > SHOWN) return false;
  const turn = (key) => Math.abs(2 * Math.sin((some[key] - other[key]) / 2));
  return turn("angle") > TURN || turn("back") > TURN || Math.abs(Math.log(some.gain / other.gain)) > Math.log(RATIO);
}

function denseOf({ rows, columns, values }, size) {
  const entries = new Float64Array(size * size);
  rows.forEach((row, k) => (entries[row * size + columns[k]] = values[k]));
  return { size, entries };
}

/** Return {crossover, phaseMargin, gainMargin, peak} of a loop; NaN where there is none. */
function marginsOf({ omega, gain, phase, sensitivity, isStable }) {
  const found = { crossover: NaN, phaseMargin: NaN, gainMargin: NaN, peak: NaN };
  if (!isStable) return found;
  found.peak = Math.max(...sensitivity);
  for (let k = 1; k < omega.length; k++) {
    const [g0, g1] = [gain[k - 1], gain[k]].map(Math.log);
    const between = (share, row) => row[k - 1] + share * (row[k] - row[k - 1]);
    if (g0 > 0 !== g1 > 0) {
      const share = g0 / (g0 - g1);
      const margin = Math.abs(((((between(share, phase) + 180 + 180) % 360) + 360) % 360) - 180);
      if (!(margin >= found.phaseMargin)) {
        [found.phaseMargin, found.crossover] = [margin, omega[k - 1] * (omega[k] / omega[k - 1]) ** share];
      }
    }
    const [n0, n1] = [phase[k - 1], phase[k]].map((each) => Math.floor((each + 180) / 360));
    if (n0 !== n1 && gain[k] > 1e-9) {
      const level = 360 * Math.max(n0, n1) - 180;
      const share = (level - phase[k - 1]) / (phase[k] - phase[k - 1]);
      const factor = Math.exp(-between(share, gain.map(Math.log)));
      if (!(Math.abs(Math.log(factor)) >= Math.abs(Math.log(found.gainMargin)))) found.gainMargin = factor;
    }
  }
  return found;
}

/** Make the charts of loop gains. */
function makeBode(data, app, model) {
  const choice = element(
    "select",
    { "aria-label": "Loop", onchange: () => draw() },
    data.loops.map(({ name }, k) => element("option", { value: k }, name)),
  );
  let zoomed = null;
  const hands = {
    zoom: (range) => draw((zoomed = range)),
    reset: () => draw((zoomed = null)),
    hover: (at) => charts.forEach((chart) => chart.point(at)),
  };
  const charts = [makeChart(hands), makeChart(hands)];
  const note = element("p", { class: "note" });
  const canvas = element("div", {}, charts[0].face, charts[1].face);
  const part = element(
    "div",
    { class: "part" },
    element("p", { class: "ends" }, "Loop gain at ", choice, ", at the end of the run"),
    canvas,
    element("p", { class: "axis" }, "frequency [rad/s], above the gain, below the phase [deg]"),
    note,
  );
  let width = 0;
  followWidth(canvas, (now) => {
    width = now;
    draw();
  });
  const kept = new WeakMap(); // loops by the results of which they are

  function loopIn(run) {
    const loop = data.loops[Number(choice.value)];
    if (!kept.has(run.result)) kept.set(run.result, new Map());
    const own = kept.get(run.result);
    if (!own.has(loop.name)) own.set(loop.name, loopOf(loop, run, model, data, app));
    return own.get(loop.name);
  }
  function draw() {
    if (width === 0 || part.hidden || !app.current?.result.state) return;
    const runs = [...app.overlays(), { run: app.current }].filter(({ run }) => run.result.state);
    const found = runs.map(({ run, dash }) => ({ ...loopIn(run), dash }));
    const now = found[found.length - 1];
    const seen = now.omega.filter((_, k) => now.gain[k] < SHOWN && now.gain[k] > 1 / SHOWN);
    const range = zoomed ?? (seen.length > 1 ? [seen[0], seen[seen.length - 1]] : [LOWEST, HIGHEST]);
    [["gain", ""], ["phase", "deg"]].forEach(([key, unit], c) => {
      const lines = found.map(({ dash, omega, ...rows }) => ({ name: key, unit, x: omega, y: rows[key], ...runLook(dash) }));
      const margin = { ...MARGIN, b: c === 1 ? FOOT : MARGIN.b };
      const x = { range, logarithmic: true, labels: c === 1 };
      charts[c].draw({ width, height: 150, margin, x, y: { logarithmic: c === 0 }, lines });
    });
    const { crossover, phaseMargin, gainMargin, peak } = marginsOf(now);
    charts.forEach((chart) => chart.rule("cursor", Number.isNaN(crossover) ? null : crossover));
    note.textContent = !now.isStable
      ? "The closed loop does not decay, so that it has no margins"
      : `Crossover ${format(crossover)} rad/s, phase margin ${format(phaseMargin)}°, ` +
      `gain margin ${format(gainMargin)}, greatest sensitivity ${format(peak)}`;
    Object.assign(note.dataset, { crossover, phaseMargin, gainMargin, peak });
  }
  return { part, draw };
}
