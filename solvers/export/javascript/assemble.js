// Mechanisms with loops that are put together before a run, as `closing.py` does it in Python, but
// for starts from elsewhere: Newton's method with the least change of the velocities that are free.
// It needs `equations` and `info`.

const CLOSED = 1e-10; // largest error that is left
const MOST_CLOSING_STEPS = 100;
const LONGEST_CLOSING_STEP = 0.5; // rad or m
const MOST_HALVINGS = 30;
const PATIENCE = 4; // steps, after which errors have to be smaller than
const PROGRESS = 0.95; // times what they were
const INDEPENDENT = 1e-7; // least singular value that counts, relative to the largest
const MOST_SWEEPS = 60;

const largest = (values) => values.reduce((most, each) => Math.max(most, Math.abs(each)), 0);

// The shortest x with A x = b in the least squares sense, for the columns that are free; by the
// singular values of A from rotations of its columns (M. Hestenes, 1958).
function leastSolution(A, b, free) {
  const columns = free.flatMap((each, k) => (each ? [k] : []));
  const U = columns.map((k) => A.map((row) => row[k]));
  const V = columns.map((_, i) => columns.map((_, j) => (i === j ? 1 : 0)));
  const dot = (p, q) => p.reduce((sum, each, i) => sum + each * q[i], 0);
  const turn = (p, q, c, s) => {
    for (let i = 0; i < p.length; i++) [p[i], q[i]] = [c * p[i] - s * q[i], s * p[i] + c * q[i]];
  };
  for (let sweep = 0, turned = true; turned && sweep < MOST_SWEEPS; sweep++) {
    turned = false;
    for (let j = 1; j < U.length; j++) {
      for (let i = 0; i < j; i++) {
        const [a, d, g] = [dot(U[i], U[i]), dot(U[j], U[j]), dot(U[i], U[j])];
        if (!(Math.abs(g) > 1e-15 * Math.sqrt(a * d)) || g === 0) continue;
        const zeta = (d - a) / (2 * g);
        const t = (zeta < 0 ? -1 : 1) / (Math.abs(zeta) + Math.hypot(1, zeta));
        const c = 1 / Math.hypot(1, t);
        turn(U[i], U[j], c, c * t);
        turn(V[i], V[j], c, c * t);
        turned = true;
      }
    }
  }
  const sizes = U.map((each) => Math.sqrt(dot(each, each)));
  const least = INDEPENDENT * Math.max(0, ...sizes);
  const x = free.map(() => 0);
  sizes.forEach((size, k) => {
    if (!(size > least)) return;
    const share = dot(U[k], b) / (size * size);
    columns.forEach((column, i) => (x[column] += share * V[k][i]));
  });
  return x;
}

// What `closing` says of a state: errors, rates, their derivatives, and how positions move.
function closingAt(closing, time, x, env) {
  const { rows, positions: n, velocities: m } = closing;
  const errors = rows.filter(Boolean).length;
  const all = new Float64Array(errors + rows.length + (rows.length + n) * m + m);
  closing.values(time, x, env, all);
  let at = 0;
  const take = (count) => Array.from(all.subarray(at, (at += count)));
  const matrix = (count) => Array.from({ length: count }, () => take(m));
  const found = { errors: take(errors), rates: take(rows.length) };
  return { ...found, J: matrix(rows.length), moves: matrix(n), free: take(m).map((each) => each !== 0) };
}

// Move the positions of x until all constraints of a mechanism are met; whether they are.
function close(closing, time, x, env) {
  const { at, positions: n, rows, limits, places, normal } = closing;
  let present = closingAt(closing, time, x, env);
  const rated = new Set(places.filter((_, k) => present.free[k]));
  const [lower, upper] = limits.map((row, side) =>
    row.map((each, i) => (rated.has(i) ? each : side ? Infinity : -Infinity)),
  );
  const step = (from, moves, change) => {
    const moved = from.map((each, i) => {
      const rate = moves[i].reduce((sum, entry, k) => sum + entry * change[k], 0);
      return Math.min(Math.max(each + rate, lower[i]), upper[i]);
    });
    for (const group of normal) {
      const length = Math.hypot(...group.map((i) => moved[i]));
      for (const i of group) moved[i] /= length;
    }
    x.set(moved, at);
  };
  step(Array.from(x.subarray(at, at + n)), present.moves, present.free.map(() => 0));
  present = closingAt(closing, time, x, env);
  const sizes = [];
  for (let count = 0; count < MOST_CLOSING_STEPS; count++) {
    if (largest(present.errors) <= CLOSED) return true;
    const size = Math.hypot(...present.errors);
    sizes.push(size);
    if (count >= PATIENCE && size > PROGRESS * sizes[count - PATIENCE]) return false;
    const from = Array.from(x.subarray(at, at + n));
    const { moves } = present;
    let change = closingStep(present, rows, from, [lower, upper], places);
    for (let halvings = 0; ; halvings++) {
      if (halvings === MOST_HALVINGS) {
        x.set(from, at);
        return false;
      }
      step(from, moves, change);
      present = closingAt(closing, time, x, env);
      if (Math.hypot(...present.errors) < size) break;
      change = change.map((each) => 0.5 * each);
    }
  }
  return false;
}

// The step of Newton, in which what is at a limit does not go beyond it.
function closingStep({ errors, J, free }, rows, from, [lower, upper], places) {
  const ours = J.filter((_, k) => rows[k]);
  let mobile = free;
  for (;;) {
    const change = leastSolution(ours, errors, mobile).map((each) => -each);
    const blocked = change.map((each, k) => {
      const i = places[k];
      return (from[i] <= lower[i] && each < 0) || (from[i] >= upper[i] && each > 0);
    });
    if (!blocked.some(Boolean)) {
      const share = Math.min(1, LONGEST_CLOSING_STEP / Math.max(largest(change), LONGEST_CLOSING_STEP));
      return change.map((each) => share * each);
    }
    mobile = mobile.map((each, k) => each && !blocked[k]);
  }
}

// Change velocities as little as constraints ask for.
function fitVelocities(closing, time, x, env) {
  const { rates, J, free } = closingAt(closing, time, x, env);
  const change = leastSolution(J, rates, free);
  const first = closing.at + closing.positions;
  change.forEach((each, k) => (x[first + k] -= each));
}

// Put mechanisms together: those that say so wherever they are open at all, the others where a
// motion could not begin and `asked` is true. Returns the paths of those that were not met so far.
function assemble(time, x, env, asked) {
  const found = [];
  const far = asked && badStart(time, x, env).length > 0;
  for (const closing of equations.closings) {
    const { errors, rates } = closingAt(closing, time, x, env);
    const isOpen = !(Math.max(largest(errors), largest(rates)) <= CLOSED);
    if (!isOpen || !(closing.told || far)) continue;
    if (!close(closing, time, x, env)) {
      const left = badStart(time, x, env).join(", ");
      throw new Error(
        `Cannot assemble '${closing.path || info.name}' near these positions: expected constraints that can be ` +
          `met, found ${left || "errors that do not become small"}. Start nearer to a closed ` +
          "configuration, or check the lengths and angles of its constraints",
      );
    }
    fitVelocities(closing, time, x, env);
    if (!closing.told) found.push(closing.path);
  }
  return found;
}
