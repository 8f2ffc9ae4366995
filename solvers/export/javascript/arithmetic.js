// Operations of NumPy that JavaScript has not, or has with other results for special numbers; and
// what puts functions f(t, x, env, out) together.

function isInfinite(a) {
  return Math.abs(a) === Infinity;
}

function copysign(a, b) {
  const size = Math.abs(a);
  return b < 0 || Object.is(b, -0) ? -size : size;
}

function rint(a) {
  const spacing = 4503599627370496; // 2^52, from which on all numbers are whole
  if (!(Math.abs(a) < spacing)) return a;
  return copysign(Math.abs(a) + spacing - spacing, a);
}

function power(a, b) {
  if (a === 1 || (a === -1 && Math.abs(b) === Infinity)) return 1;
  return Math.pow(a, b);
}

function fmax(a, b) {
  return a >= b || b !== b ? a : b;
}

function fmin(a, b) {
  return a <= b || b !== b ? a : b;
}

function fmod(a, b) {
  return a % b;
}

function inSequence(functions) {
  return (t, x, env, out) => {
    for (const each of functions) each(t, x, env, out);
  };
}

// What depends on parameters alone, computed once for all functions.
function preparation(start, prepare) {
  return (env) => prepare(0, env, env, env.subarray(start));
}

// The entries of a Jacobian by slopes along directions, in each of which some of the states change.
function alongDirections({ directions, sources, ends, count }, functions) {
  const seed = new Float64Array(directions.length);
  const results = new Float64Array(count);
  const { numbers, slopes } = functions(seed);
  return (t, x, env, out) => {
    numbers(t, x, env, results);
    let entry = 0;
    for (let turn = 0; turn < ends.length; turn++) {
      for (let k = 0; k < seed.length; k++) seed[k] = directions[k] === turn ? 1 : 0;
      slopes(t, x, env, results);
      for (; entry < ends[turn]; entry++) out[entry] = results[sources[entry]];
    }
  };
}
