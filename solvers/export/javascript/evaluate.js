// What the equations give at one time and state; it needs `info`, `places` and `equations`.

function quoted(names) {
  return names.length > 20 ? `${names.slice(0, 20).join(", ")}, ...` : names.join(", ");
}

// The time, state and environment with which a model begins, with other values in the place of
// those that are given by path: {time, parameters, inputs, initial}.
function startingValues(options = {}) {
  for (const name of ["parameters", "inputs", "initial"]) {
    const given = options[name] ?? {};
    if (Object.prototype.toString.call(given) !== "[object Object]") {
      throw new Error(`Cannot set ${name} of '${info.name}': expected {path: numbers}`);
    }
  }
  const x = Float64Array.from(start.x);
  const env = new Float64Array(equations.size);
  env.set(start.env);
  const given = { ...options.parameters, ...options.inputs, ...options.initial };
  for (const { path, required } of info.inputs) {
    if (required && !Object.hasOwn(given, path)) {
      throw new Error(`Cannot evaluate '${info.name}': its input '${path}' has no value`);
    }
  }
  for (const [path, value] of Object.entries(given)) {
    const place = Object.hasOwn(places, path) ? places[path] : undefined;
    if (place === undefined) {
      throw new Error(`Cannot set '${path}': known are ${quoted(Object.keys(places))}`);
    }
    const numbers = typeof value === "number" ? [value] : Array.from(value);
    if (numbers.length !== place.size || !numbers.every((each) => typeof each === "number")) {
      throw new Error(`Cannot set '${path}': it has ${place.size} numbers, not ${numbers.length}`);
    }
    (place.array === "x" ? x : env).set(numbers, place.at);
  }
  for (const relation of info.relations) checkRelation(env, relation);
  equations.prepare(env);
  return { time: options.time ?? start.time, x, env };
}

// Refuse parameters that contradict each other, component by component.
function checkRelation(env, { left, comparison, right }) {
  const [low, high] = [left, right].map((path) => {
    const { at, size } = places[path];
    return env.subarray(at, at + size);
  });
  for (let k = 0; k < Math.max(low.length, high.length); k++) {
    const [a, b] = [low, high].map((each) => each[each.length > 1 ? k : 0]);
    if (comparison === "<" ? a < b : a <= b) continue;
    throw new Error(
      `Cannot use the parameters of '${info.name}': expected ${left} ${comparison} ${right}; ` +
        `found ${a} and ${b}. Set both so that they agree`,
    );
  }
}

// A function f(t, x, env, out) of signals, and where each of them begins in `out`.
function signalReader(paths) {
  if (!Array.isArray(paths)) {
    throw new Error(`Cannot read signals of '${info.name}': expected a list of paths`);
  }
  const wanted = paths.map((path) => {
    const signal = info.signals.findIndex((each) => each.path === path);
    if (signal < 0) {
      const known = info.signals.map((each) => each.path);
      throw new Error(`Cannot read '${path}': known are ${quoted(known)}`);
    }
    return signal;
  });
  const { parts, needs, ends } = equations.signals;
  const needed = [...new Set(wanted.flatMap((signal) => needs[signal]))].sort((a, b) => a - b);
  const functions = needed.map((each) => parts[each]);
  const all = new Float64Array(ends.at(-1) ?? 0);
  const spans = wanted.map((signal) => [signal ? ends[signal - 1] : 0, ends[signal]]);
  const starts = [];
  let size = 0;
  for (const [first, last] of spans) {
    starts.push(size);
    size += last - first;
  }
  const read = (t, x, env, out) => {
    for (const each of functions) each(t, x, env, all);
    spans.forEach(([first, last], k) => {
      for (let i = first; i < last; i++) out[starts[k] + i - first] = all[i];
    });
  };
  return { read, starts, size };
}

const instantOptions = ["time", "state", "parameters", "inputs", "initial", "signals"];

function evaluate(options = {}) {
  const unknown = Object.keys(options).find((name) => !instantOptions.includes(name));
  if (unknown !== undefined) {
    const known = `expected some of ${quoted(instantOptions)}`;
    throw new Error(`Cannot evaluate '${info.name}': ${known}, found '${unknown}'`);
  }
  const { time, x, env } = startingValues(options);
  if (typeof time !== "number") {
    throw new Error(`Cannot evaluate '${info.name}': expected a number as time, found '${time}'`);
  }
  const state = options.state === undefined ? x : Array.from(options.state);
  if (state.length !== x.length || !state.every((each) => typeof each === "number")) {
    throw new Error(`Cannot evaluate '${info.name}': its state has ${x.length} numbers`);
  }
  x.set(state);
  const derivatives = new Float64Array(x.length);
  equations.rhs(time, x, env, derivatives);
  const paths = options.signals ?? [];
  const reader = signalReader(paths);
  const values = new Float64Array(reader.size);
  reader.read(time, x, env, values);
  const signals = paths.map((path, k) => [
    path,
    values.slice(reader.starts[k], reader.starts[k + 1] ?? reader.size),
  ]);
  return {
    derivatives,
    signals: Object.fromEntries(signals),
    // Computed when it is looked at, as that takes the longest.
    get jacobian() {
      if (equations.jacobian === null) return null;
      const { rows, columns } = equations.jacobian;
      const entries = new Float64Array(rows.length);
      equations.jacobian.values(time, x, env, entries);
      return { rows, columns, values: entries };
    },
    get breaks() {
      const found = new Float64Array(equations.breaks.count);
      equations.breaks.values(time, x, env, found);
      return found;
    },
  };
}
