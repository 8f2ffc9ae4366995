function flexureModel() {
"use strict";
// Operations of NumPy that JavaScript has not, or has with other results for special numbers; and
// what puts functions f(t, x, env, out) together.

function isInfinite(a) {
  return Math.abs(a) === Infinity;
}

function sign(a) {
  return Math.sign(a) + 0; // that of -0 is 0
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

function remainder(a, b) {
  const rest = a % b;
  if (b === 0) return rest;
  if (rest === 0) return copysign(0, b);
  return b < 0 !== rest < 0 ? rest + b : rest;
}

function floorDivide(a, b) {
  const rest = a % b;
  const plain = a / b;
  if (b === 0) return plain;
  let quotient = (a - rest) / b;
  if (b < 0 !== rest < 0 && rest !== 0) quotient -= 1;
  if (quotient === 0) return copysign(0, plain);
  const down = Math.floor(quotient);
  return quotient - down > 0.5 ? down + 1 : down;
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

const info = {"name":"strip","time":0.0,"parameters":[{"path":"mass","labels":[],"unit":"kg","doc":"","lower":[null],"upper":[null],"exclusive":false,"infinite":false,"value":[0.5],"shape":[],"at":0},{"path":"stiffness","labels":[],"unit":"N/m","doc":"","lower":[null],"upper":[null],"exclusive":false,"infinite":false,"value":[200.0],"shape":[],"at":1},{"path":"scale","labels":[],"unit":"m","doc":"","lower":[null],"upper":[null],"exclusive":false,"infinite":false,"value":[0.01],"shape":[],"at":2},{"path":"damping","labels":[],"unit":"N s/m","doc":"","lower":[null],"upper":[null],"exclusive":false,"infinite":false,"value":[0.4],"shape":[],"at":3}],"relations":[],"inputs":[{"path":"force","labels":[],"unit":"N","doc":"","value":[0.0],"required":false,"at":4}],"states":[{"path":"x[position]","unit":"","initial":0.02,"at":0},{"path":"x[speed]","unit":"","initial":0.0,"at":1}],"discrete":[],"signals":[{"path":"position","labels":["0"],"unit":"m","size":1,"doc":""},{"path":"x","labels":["position","speed"],"unit":"","size":2,"doc":""}],"events":[],"leftOut":{}};
const places = {"mass":{"array":"env","at":0,"size":1},"stiffness":{"array":"env","at":1,"size":1},"scale":{"array":"env","at":2,"size":1},"damping":{"array":"env","at":3,"size":1},"force":{"array":"env","at":4,"size":1},"x[position]":{"array":"x","at":0,"size":1},"x":{"array":"x","at":0,"size":2},"x[speed]":{"array":"x","at":1,"size":1}};
const start = {"time":0.0,"x":[0.02,0.0],"env":[0.5,200.0,0.01,0.4,0.0]};
const equations = {
states: 2,
discrete: 0,
timed: false,
rhs: (t, x, env, out) => {
const v1 = x[0];
const v2 = v1 / env[2];
const v3 = x[1];
out[0] = v3;
out[1] = (env[4] - ((((v2 * v2) + 1) * (v1 * env[1])) + (v3 * env[3]))) / env[0];
},
jacobian: {
rows: [0,1,1],
columns: [1,0,1],
values: (t, x, env, out) => {
const v1 = x[0];
const v2 = env[1];
const v3 = v1 / env[2];
const v4 = v3 * env[5];
const v5 = env[6];
out[0] = 1;
out[1] = -((((v1 * v2) * (v4 + v4)) + (v2 * ((v3 * v3) + 1))) * v5);
out[2] = -(env[3] * v5);
},
factors: {"nonzeros":3,"pairs":1,"starts":[0,2,4],"diagonal":[0,3],"column":[0,1,0,1],"slots":[1,2,3],"ranks":[0,1],"lower":[2],"upper":[1]},
},
noJacobian: "",
clocks: [],
witnesses: {
count: 0,
directions: [],
longest: Infinity,
values: (t, x, env, out) => {

},
},
manifold: {
count: 0,
deviations: (t, x, env, out) => {

},
projection: (t, x, env, out) => {

},
},
events: [
],
breaks: {
count: 0,
values: (t, x, env, out) => {

},
},
starts: {
what: [],
values: (t, x, env, out) => {

},
},
closings: [
],
signals: {
parts: [
(t, x, env, out) => {
out[0] = x[0];
},
(t, x, env, out) => {
out[1] = x[0];
out[2] = x[1];
},
],
needs: [[0],[1]],
ends: [1,3],
},
prepare: preparation(5, (t, x, env, out) => {
out[0] = 1 / env[2];
out[1] = 1 / env[0];
}),
size: 7,
};
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

const assemble = () => [];
const { loops, newRun, nextafter$, update, settle, finish_motion, note_change, find_ticks, next_stop, next_tick, spacing, piles_up, COMPLETE, PAUSED, INTERRUPTED, STIFF, DOUBTFUL, SLOW, DEPARTED, KEPT, FAR, ROOM, STEP, CHANGE, SAMPLE, CROSSING, TIME, BEGIN, END, CLIP, STATE, MOST_ROWS, UNRESTRICTED, DISCRETE, SEARCH_SIZE, WATCH_SIZE, STRIDE, MARKS, ROOMY, NONSTIFF_METHOD, STIFF_METHOD } = (() => {
const bits$ = new Float64Array(1), words$ = new Uint32Array(bits$.buffer);
const low$ = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1 ? 0 : 1, high$ = 1 - low$;
function nextafter$(a, b) {
if (!(a < b) && !(a > b)) return a === b ? b : NaN;
if (a === 0) return b > 0 ? 5e-324 : -5e-324;
bits$[0] = a;
if (a < b === a > 0) {
words$[low$] += 1;
if (words$[low$] === 0) words$[high$] += 1;
} else {
if (words$[low$] === 0) words$[high$] -= 1;
words$[low$] -= 1;
}
return bits$[0];
}
function view$(array, start) {
return start === 0 ? array : array.subarray(start);
}
const COMPLETE = 0;
const PAUSED = 1;
const INTERRUPTED = 2;
const STIFF = 3;
const DOUBTFUL = 4;
const SLOW = 5;
const DEPARTED = 6;
const KEPT = 2;
const FAR = 1000.0;
const ROOM = 10.0;
const STEP = 0;
const CHANGE = 1;
const SAMPLE = 2;
const CROSSING = 3;
const TIME = 0;
const BEGIN = 1;
const END = 2;
const CLIP = 3;
const STATE = 4;
const MOST_ROWS = 4;
const UNRESTRICTED = 1;
const DISCRETE = 0;
const SEARCH_SIZE = 9;
const WATCH_SIZE = 30;
const STRIDE = 1000;
const MARKS = 20;
const ROOMY = 1000;
const NONSTIFF_METHOD = "RK45";
const STIFF_METHOD = "Rodas5P";
function newRun() {
return {boundary: -0, jump: -0, budget: 0, system: {n: 0, m: 0, env: null, rhs: null, timed: 0, attempt: null, signals: null}, tolerances: {rtol: null, atol: null, max_step: -0}, step: {time: -0, time_old: -0, time_new: -0, clip: -0, h: -0, h_next: -0, h_wanted: -0, h_first: -0, error_old: -0, x: null, x_old: null, x_new: null, work: null, point: null, k: null, q: null, time_slope: null, keeping: 0, moved: 0, ready: 0}, linear: {n: 0, jacobian: null, known: 0, nonzeros: 0, entries: null, rows: null, columns: null, sparse: 0, factors: {nonzeros: 0, pairs: 0, starts: null, diagonal: null, column: null, slots: null, ranks: null, lower: null, upper: null}, blocks: {count: 0, kept: 0, expressed: 0, states: null, places: null, positions: null, followed: null, links: null, starts: null, others: null, direct: null, through: null, columns: null, targets: null, d: -0, tiles: null, passed: null, ratios: null, own: null, weights: null, y: null, z: null}, factored_sparse: 0, values: null, row: null, roomy: 0, matrix: null, pivots: null}, columns: {n: 0, count: 0, rhs: null, jacobian: null, env: null, nonzeros: 0, entries: null, rows: null, columns: null, slopes: null, own: null, steered: 0, pulls: null, places: null, scales: null, push: null, drives: 0, begin: -0, bases: null, tilts: null, targets: null, own_targets: null, wanted: 0, given: 0, times: null, samples: null}, motion: {moving: 0, stop: -0, steps: 0, changed: 0, unpublished: 0, verdict: 0}, stiffness: {watching: 0, looked: 0, suspicious: 0}, pace: {judged_at: 0, strides: 0, marks: null, end: -0, most_steps: -0, deliberate: -0, slow: 0}, clocks: {count: 0, periods: null, offsets: null, updating: null, publishing: null, publishes: 0, ticks: null, publish_ticks: null, breaking: 0, breaks: null}, updates: {count: 0, functions: null, unrestricted: null, clock: null, trigger: null, pending: null, settling: null, settles: 0, unsettled: 0, first_target: null, targets: null, lines: 0, mover: null, starts: null, aparts: null, ends: null, moved: 0, staged: null, results: null}, witnesses: {count: 0, values: null, directions: null, handled: null, turning: null, longest: -0, on_surface: null, surface: null, jumped: 0, first: null, known: 0, stirred: 0, leaping: null, samples: null, instants: null, order: null, slopes: null, fast: null, peaks: null, search: null, crossed: 0, time_crossed: -0}, manifold: {count: 0, allowed: -0, farthest: -0, deviations: null, projection: null, env: null, discrete: 0, coded: 0, pulls: 0, answer: 0, time: -0, values: null, landed: null, shift: null, slope: null}, rows: {recording: 0, stepwise: 0, logging: 0, used: 0, room: 0, kinds: null, table: null, width: 0, discrete: 0, held: 0, places: null, signals: 0}, counts: {steps: 0, rejected: 0, restarts: 0, evaluations: 0, jacobians: 0, factorizations: 0, discrete_updates: 0, unrestricted_updates: 0}};
}
function update(run, kind) {
let updates, found, e;
updates = run.updates;
found = 0;
for (let e$at = 0, e$end = updates.count; e$at < e$end; e$at++) {
e = e$at;
if (updates.pending[e] === 1 && updates.unrestricted[e] === kind) {
found = found + 1;
}
}
if (found === 0) {
return true;
}
if (!compute_updates(updates, kind, run.system, run.step)) {
return false;
}
for (let e$at = 0, e$end = updates.count; e$at < e$end; e$at++) {
e = e$at;
if (updates.pending[e] === 1 && updates.unrestricted[e] === kind) {
updates.pending[e] = 0;
pass_on(run, e);
replace(run, updates.first_target[e], updates.first_target[e + 1]);
}
}
if (kind === 1) {
run.counts.unrestricted_updates = run.counts.unrestricted_updates + found;
} else {
run.counts.discrete_updates = run.counts.discrete_updates + found;
}
return true;
}
function compute_updates(updates, kind, system, step) {
let e, first, last, call;
for (let e$at = 0, e$end = updates.count; e$at < e$end; e$at++) {
e = e$at;
if (updates.pending[e] === 1 && updates.unrestricted[e] === kind) {
first = updates.first_target[e];
last = updates.first_target[e + 1];
call = updates.functions[e];
call(step.time, step.x, system.env, view$(updates.results, first));
if (!all_finite(last - first, updates.results, first)) {
return false;
}
}
}
return true;
}
function all_finite(n, a, a$start) {
let total, i;
total = 0;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
total = total + a[a$start + i] * 0;
}
return total === 0;
}
function pass_on(run, e) {
let updates, env, bit, k, start, apart, count, i, to;
updates = run.updates;
env = run.system.env;
bit = 1;
for (let k$at = 0, k$end = updates.lines; k$at < k$end; k$at++) {
k = k$at;
if (updates.mover[k] === e) {
start = updates.starts[k];
apart = updates.aparts[k];
count = updates.ends[k] - start - apart;
for (let i$at = 0, i$end = count; i$at < i$end; i$at++) {
i = i$at;
to = start + apart + count - 1 - i;
env[to] = env[to - apart];
}
run.motion.changed = 1;
run.witnesses.stirred = 1;
if (Math.floor(updates.moved / bit) % 2 === 0) {
updates.moved = updates.moved + bit;
}
}
bit = bit * 2;
}
}
function replace(run, first, last) {
let updates, x, env, n, g, target, new$;
updates = run.updates;
x = run.step.x;
env = run.system.env;
n = run.system.n;
for (let g$at = first, g$end = last; g$at < g$end; g$at++) {
g = g$at;
target = updates.targets[g];
new$ = updates.results[g];
if (target >= n) {
if (env[target - n] !== new$) {
env[target - n] = new$;
run.motion.changed = 1;
run.witnesses.stirred = 1;
}
} else {
if (x[target] !== new$) {
x[target] = new$;
run.motion.changed = 1;
run.witnesses.jumped = 1;
run.witnesses.stirred = 1;
}
}
}
}
function settle(run) {
let updates, motion, before, settled, _, e;
updates = run.updates;
motion = run.motion;
before = motion.changed;
settled = false;
for (let _$at = 0, _$end = 1000; _$at < _$end; _$at++) {
_ = _$at;
for (let e$at = 0, e$end = updates.count; e$at < e$end; e$at++) {
e = e$at;
if (updates.settling[e] === 1) {
updates.pending[e] = 1;
}
}
motion.changed = 0;
if (!update(run, 1) || !update(run, 0)) {
break;
}
if (motion.changed === 0) {
settled = true;
break;
}
before = 1;
}
motion.changed = before;
updates.unsettled = settled ? 0 : 1;
for (let e$at = 0, e$end = updates.count; e$at < e$end; e$at++) {
e = e$at;
if (updates.settling[e] === 1) {
updates.pending[e] = 0;
}
}
return settled;
}
function finish_motion(run) {
let step, motion, updates, e, c;
step = run.step;
motion = run.motion;
updates = run.updates;
motion.moving = 0;
step.h_next = carried_step(step.h_next, step.h_wanted, step.h_first, motion.steps, step.time_old, step.time_new, motion.stop);
for (let e$at = 0, e$end = updates.count; e$at < e$end; e$at++) {
e = e$at;
c = updates.clock[e];
if (c >= 0 && run.clocks.ticks[c] === step.time) {
updates.pending[e] = 1;
}
}
go_past(run.clocks, step.time);
}
function carried_step(following, wanted, given, steps, begin, end, stop) {
let whole;
whole = steps === 1 && given > 0 ? given : wanted;
if (end === stop && begin + whole > stop && whole > following) {
return whole;
}
return following;
}
function go_past(clocks, time) {
let c;
for (let c$at = 0, c$end = clocks.count; c$at < c$end; c$at++) {
c = c$at;
if (clocks.ticks[c] <= time) {
clocks.ticks[c] = next_tick(clocks.periods[c], clocks.offsets[c], time);
}
}
}
function next_tick(period, offset, time) {
let k;
if (time < offset) {
return offset;
}
k = Math.ceil((time - offset) / period) - 1;
while (offset + k * period <= time) {
k = k + 1;
}
return offset + k * period;
}
function note_change(run) {
if (run.motion.changed === 1 && run.rows.recording === 1) {
add_row(run, 1, run.updates.moved, run.step.time, run.step.x, 0);
run.updates.moved = 0;
}
run.motion.changed = 0;
}
function add_row(run, kind, mask, time, x, x$start) {
let rows, system, row, row$start, i;
rows = run.rows;
system = run.system;
row$start = rows.used * rows.width;
row = rows.table;
rows.kinds[2 * rows.used] = kind;
rows.kinds[2 * rows.used + 1] = mask;
row[row$start] = time;
row[row$start + 1] = run.step.time_old;
row[row$start + 2] = run.step.time_new;
row[row$start + 3] = run.step.clip;
copy(system.n, x, x$start, row, row$start + 4);
if (kind !== 0) {
for (let i$at = 0, i$end = rows.held; i$at < i$end; i$at++) {
i = i$at;
row[row$start + (rows.discrete + i)] = system.env[rows.places[i]];
}
}
if (rows.logging === 1 && kind === 2) {
system.signals(time, view$(x, x$start), system.env, view$(row, row$start + rows.signals));
}
rows.used = rows.used + 1;
}
function copy(n, a, a$start, out, out$start) {
let i;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
out[out$start + i] = a[a$start + i];
}
}
function find_ticks(clocks, time) {
let c;
for (let c$at = 0, c$end = clocks.count; c$at < c$end; c$at++) {
c = c$at;
clocks.ticks[c] = next_tick(clocks.periods[c], clocks.offsets[c], time);
clocks.publish_ticks[c] = clocks.ticks[c];
}
}
function next_stop(clocks, every, stop) {
let c;
for (let c$at = 0, c$end = clocks.count; c$at < c$end; c$at++) {
c = c$at;
if (clocks.updating[c] === 1 || every === 1) {
stop = smaller(stop, clocks.ticks[c]);
}
}
return stop;
}
function smaller(a, b) {
return b < a ? b : a;
}
function spacing(a) {
let size;
size = Math.abs(a);
return nextafter$(size, Infinity) - size;
}
function piles_up(watch, watch$start, time, blurred) {
let count, last, distance, oldest;
watch[watch$start + 5] = blurred ? watch[watch$start + 5] + 1 : 0;
count = Math.trunc(watch[watch$start]);
last = count > 0 ? watch[watch$start + 1] : time;
distance = time - last;
if (distance > 0 && distance < watch[watch$start + 2]) {
watch[watch$start + (18 + Math.trunc(watch[watch$start + 4]) % 12)] = distance / watch[watch$start + 2];
watch[watch$start + 4] = watch[watch$start + 4] + 1;
} else {
watch[watch$start + 4] = 0;
watch[watch$start + 3] = last;
}
watch[watch$start + 2] = distance;
watch[watch$start + (6 + count % 12)] = time;
watch[watch$start + 1] = time;
watch[watch$start] = watch[watch$start] + 1;
if (watch[watch$start + 5] >= 12) {
return true;
}
oldest = watch[watch$start + (6 + (count + 1) % 12)];
if (count + 1 >= 12 && time - oldest <= 1e-11 * larger(1, Math.abs(time))) {
return true;
}
return converges(watch, watch$start, time);
}
function larger(a, b) {
return b > a ? b : a;
}
function converges(watch, watch$start, time) {
let ratio, covered, still;
if (watch[watch$start + 4] < 12) {
return false;
}
ratio = 0;
ratio = larger(ratio, watch[watch$start + 18]);
ratio = larger(ratio, watch[watch$start + 19]);
ratio = larger(ratio, watch[watch$start + 20]);
ratio = larger(ratio, watch[watch$start + 21]);
ratio = larger(ratio, watch[watch$start + 22]);
ratio = larger(ratio, watch[watch$start + 23]);
ratio = larger(ratio, watch[watch$start + 24]);
ratio = larger(ratio, watch[watch$start + 25]);
ratio = larger(ratio, watch[watch$start + 26]);
ratio = larger(ratio, watch[watch$start + 27]);
ratio = larger(ratio, watch[watch$start + 28]);
ratio = larger(ratio, watch[watch$start + 29]);
covered = time - watch[watch$start + 3];
still = watch[watch$start + 2] * ratio < 1e-06 * covered * (1 - ratio);
return still;
}
function RK45_advance(run) {
let begun, status;
if (run.motion.moving === 0) {
find_ticks(run.clocks, run.step.time);
}
while (true) {
if (run.motion.moving === 0) {
begun = set_out$RK45$True(run);
if (begun !== -1) {
return begun;
}
}
status = move$RK45$True(run);
if (status === 1 || status >= 4) {
return status;
}
finish_motion(run);
if (status !== -1) {
return status;
}
if (run.step.time >= run.boundary) {
return 0;
}
if (run.step.time === run.jump && run.clocks.breaking === 0) {
return 2;
}
if (!has_room(run.rows)) {
return 1;
}
}
}
function set_out$RK45$True(run) {
let found;
if (!update(run, 1) || !update(run, 0)) {
return 4;
}
if (run.updates.settles === 1 && !settle(run)) {
return 4;
}
if (run.witnesses.known === 1 && run.witnesses.stirred === 1) {
found = follow_jumps(run);
if (found !== -1) {
return found;
}
}
if (run.manifold.count > 0) {
found = place_start(run);
if (found !== -1) {
return found;
}
}
return begin_motion$RK45$True(run) ? -1 : 4;
}
function follow_jumps(run) {
let witnesses, updates, k, found, rounds, status, mask, bit;
witnesses = run.witnesses;
updates = run.updates;
for (let k$at = 0, k$end = witnesses.count; k$at < k$end; k$at++) {
k = k$at;
witnesses.leaping[k] = 0;
}
found = find_jumps(run);
rounds = 0;
status = -1;
while (found === 1) {
rounds = rounds + 1;
if (cross(witnesses, updates) === 2) {
status = 2;
}
if (!update(run, 1) || !update(run, 0)) {
return 4;
}
if (updates.settles === 1 && !settle(run)) {
return 4;
}
if (rounds === 1000) {
updates.unsettled = 2;
return 4;
}
found = find_jumps(run);
}
if (found === 2) {
return 4;
}
if (rounds > 0) {
note_change(run);
mask = 0;
bit = 1;
for (let k$at = 0, k$end = witnesses.count; k$at < k$end; k$at++) {
k = k$at;
mask = mask + bit * witnesses.leaping[k];
bit = bit * 2;
}
add_row(run, 3, mask, run.step.time, run.step.x, 0);
}
return status;
}
function find_jumps(run) {
let step, witnesses, mask, bit, k;
step = run.step;
witnesses = run.witnesses;
witnesses.stirred = 0;
witnesses.values(step.time, step.x, run.system.env, witnesses.slopes);
if (!all_finite(witnesses.count, witnesses.slopes, 0)) {
return 2;
}
mask = 0;
bit = 1;
for (let k$at = 0, k$end = witnesses.count; k$at < k$end; k$at++) {
k = k$at;
if (triggers(witnesses.directions[k], witnesses.first[k], witnesses.slopes[k])) {
mask = mask + bit;
witnesses.leaping[k] = 1;
}
witnesses.first[k] = witnesses.slopes[k];
bit = bit * 2;
}
witnesses.crossed = mask;
return mask > 0 ? 1 : 0;
}
function triggers(direction, before, after) {
let falling, rising;
falling = direction <= 0 && before > 0 && after <= 0;
rising = direction >= 0 && before < 0 && after >= 0;
return falling || rising;
}
function cross(witnesses, updates) {
let status, bit, k, e;
status = -1;
bit = 1;
for (let k$at = 0, k$end = witnesses.count; k$at < k$end; k$at++) {
k = k$at;
if (Math.floor(witnesses.crossed / bit) % 2 === 1) {
if (witnesses.handled[k] === 0) {
status = 2;
}
for (let e$at = 0, e$end = updates.count; e$at < e$end; e$at++) {
e = e$at;
if (updates.trigger[e] === k) {
updates.pending[e] = 1;
}
}
}
bit = bit * 2;
}
return status;
}
function place_start(run) {
let step, system, farthest, found;
step = run.step;
system = run.system;
farthest = run.manifold.farthest;
found = place(run.manifold, system.n, step.time, Infinity, farthest, step.x, 0, system.env, 0, step.work, 0);
if (found === 1) {
run.motion.changed = 1;
run.witnesses.jumped = 1;
}
return found === 2 ? 6 : (found === 3 ? 4 : -1);
}
function place(manifold, n, time, clip, farthest, x, x$start, env, env$start, work, work$start) {
let answer, at, found, passes;
answer = manifold.answer;
manifold.answer = 0;
if (answer > 1) {
return answer === 4 ? 3 : (answer === 3 ? 1 : 0);
}
at = smaller(time, clip);
manifold.time = at;
found = deviation(manifold, at, x, x$start, env, env$start);
if (found <= manifold.allowed) {
if (found <= 1) {
manifold.allowed = 1;
}
return 0;
}
copy(n, x, x$start, manifold.landed, 0);
if (manifold.coded === 0 || found > farthest) {
return 2;
}
passes = 0;
while (passes < 5) {
passes = passes + 1;
copy(manifold.discrete, env, env$start, manifold.env, 0);
manifold.projection(at, view$(x, x$start), manifold.env, view$(work, work$start));
copy(n, work, work$start, x, x$start);
if (deviation(manifold, at, x, x$start, env, env$start) <= 1) {
return 1;
}
}
copy(n, manifold.landed, 0, x, x$start);
return 2;
}
function deviation(manifold, time, x, x$start, env, env$start) {
let largest, check, k, total;
manifold.deviations(time, view$(x, x$start), view$(env, env$start), manifold.values);
largest = 0;
check = 0;
for (let k$at = 0, k$end = manifold.count; k$at < k$end; k$at++) {
k = k$at;
largest = larger(largest, Math.abs(manifold.values[k]));
check = check + manifold.values[k] * 0;
}
total = largest + check;
return total;
}
function begin_motion$RK45$True(run) {
let step, motion, kept$2, kept$3;
step = run.step;
motion = run.motion;
if (run.clocks.breaking === 1) {
pass_break(run);
}
motion.stop = next_stop(run.clocks, run.rows.stepwise, smaller(run.boundary, run.jump));
step.clip = Infinity;
if (motion.stop === run.jump) {
step.clip = nextafter$(motion.stop, -Infinity);
}
if (!(motion.stop - step.time > 4 * spacing(step.time))) {
return false;
}
note_change(run);
kept$2 = step.time;
kept$3 = step.time;
step.time_old = kept$2;
step.time_new = kept$3;
run.witnesses.crossed = 0;
motion.steps = 0;
begin$RK45(run);
if (!all_finite(run.system.n, step.k, 0)) {
return false;
}
if (true && run.witnesses.count > 0 && !first_values(run)) {
return false;
}
motion.moving = 1;
return true;
}
function pass_break(run) {
let step, find;
step = run.step;
if (step.time === run.jump) {
run.motion.changed = 1;
}
find = run.clocks.breaks;
find(step.time, step.x, run.system.env, step.work);
run.jump = step.work[0];
}
function begin$RK45(run) {
let step, longest, interval;
step = run.step;
longest = run.tolerances.max_step;
run.counts.restarts = run.counts.restarts + 1;
run.system.rhs(smaller(step.time, step.clip), step.x, run.system.env, step.k);
run.counts.evaluations = run.counts.evaluations + 1;
step.moved = 0;
run.linear.known = 0;
step.ready = 0;
step.error_old = 0.0001;
step.h_first = step.h_next;
interval = run.motion.stop - step.time;
if (step.h_next > 0) {
step.h_next = smaller(step.h_next, smaller(longest, interval));
} else {
step.h_next = initial_step$RK45(run, interval);
}
}
function initial_step$RK45(run, interval) {
let step, rtol, atol, n, x, k, y, d0, d1, h, i, d2, later;
step = run.step;
rtol = run.tolerances.rtol;
atol = run.tolerances.atol;
n = run.system.n;
x = step.x;
k = step.k;
y = step.work;
d0 = scaled_norm(n, x, 0, x, 0, rtol, 0, atol, 0);
d1 = scaled_norm(n, k, 0, x, 0, rtol, 0, atol, 0);
h = 1e-06;
if (d0 >= 1e-05 && d1 >= 1e-05) {
h = 0.01 * d0 / d1;
}
h = smaller(h, interval);
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
y[i] = x[i] + h * k[i];
}
run.system.rhs(smaller(step.time + h, step.clip), y, run.system.env, step.x_new);
run.counts.evaluations = run.counts.evaluations + 1;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
step.x_new[i] = step.x_new[i] - k[i];
}
d2 = scaled_norm(n, step.x_new, 0, x, 0, rtol, 0, atol, 0) / h;
if (!(d2 < Infinity)) {
d2 = d1;
}
later = larger(1e-06, h * 0.001);
if (d1 > 1e-15 || d2 > 1e-15) {
later = Math.pow(0.01 / larger(d1, d2), 0.2);
}
return smaller(smaller(100 * h, later), smaller(interval, run.tolerances.max_step));
}
function scaled_norm(n, v, v$start, x, x$start, rtol, rtol$start, atol, atol$start) {
let total, i, part;
total = 0;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
part = v[v$start + i] / (atol[atol$start + i] + Math.abs(x[x$start + i]) * rtol[rtol$start + i]);
total = total + part * part;
}
return Math.sqrt(total / n);
}
function first_values(run) {
let witnesses, total, k, kept$3, kept$4;
witnesses = run.witnesses;
witnesses.values(run.step.time, run.step.x, run.system.env, witnesses.first);
total = 0;
for (let k$at = 0, k$end = witnesses.count; k$at < k$end; k$at++) {
k = k$at;
if (witnesses.on_surface[k] === 1 && witnesses.first[k] === witnesses.surface[k]) {
witnesses.first[k] = 0;
}
total = total + witnesses.first[k] * 0;
}
kept$3 = 1;
kept$4 = 0;
witnesses.known = kept$3;
witnesses.stirred = kept$4;
return total === 0;
}
function move$RK45$True(run) {
let motion, found;
motion = run.motion;
while (true) {
if (motion.unpublished === 1) {
if (!publish$RK45(run)) {
return 1;
}
motion.unpublished = 0;
if (motion.verdict !== -2) {
return motion.verdict;
}
}
if (run.budget <= 0 || !has_room(run.rows)) {
return 1;
}
run.budget = run.budget - 1;
motion.verdict = go_on$RK45$True(run);
if (motion.verdict !== -2) {
return motion.verdict;
}
found = 0;
if (true && run.witnesses.count > 0) {
found = find_crossing$RK45(run);
}
if (found === 2) {
step_back(run);
return 4;
}
motion.unpublished = 1;
if (found === 1) {
cut$RK45(run);
motion.verdict = cross(run.witnesses, run.updates);
} else {
if (run.step.time === motion.stop) {
motion.verdict = -1;
} else {
if (run.stiffness.watching === 1 && is_stiff$RK45(run)) {
motion.verdict = 3;
}
}
}
}
}
function publish$RK45(run) {
let step, clocks, rows, mask, time;
step = run.step;
clocks = run.clocks;
rows = run.rows;
mask = 0;
while (clocks.publishes === 1 && mask === 0) {
time = next_publish(clocks);
if (time > step.time) {
break;
}
if (!has_room(rows)) {
return false;
}
if (time === step.time) {
mask = due_publishes(clocks, time);
} else {
state_inside$RK45(run, time, step.point, 0);
add_row(run, 2, due_publishes(clocks, time), time, step.point, 0);
}
}
if (!has_room(rows)) {
return false;
}
if (rows.recording === 1) {
add_row(run, 0, 0, step.time, step.x, 0);
}
if (run.witnesses.crossed !== 0) {
add_row(run, 3, run.witnesses.crossed, step.time, step.x, 0);
}
if (mask !== 0 || rows.stepwise === 1) {
add_row(run, 2, mask, step.time, step.x, 0);
}
return true;
}
function next_publish(clocks) {
let time, c;
time = Infinity;
for (let c$at = 0, c$end = clocks.count; c$at < c$end; c$at++) {
c = c$at;
if (clocks.publishing[c] === 1) {
time = smaller(time, clocks.publish_ticks[c]);
}
}
return time;
}
function has_room(rows) {
return rows.used + 4 <= rows.room;
}
function due_publishes(clocks, time) {
let mask, bit, c;
mask = 0;
bit = 1;
for (let c$at = 0, c$end = clocks.count; c$at < c$end; c$at++) {
c = c$at;
if (clocks.publishing[c] === 1 && clocks.publish_ticks[c] === time) {
mask = mask + bit;
clocks.publish_ticks[c] = next_tick(clocks.periods[c], clocks.offsets[c], time);
}
bit = bit * 2;
}
return mask;
}
function state_inside$RK45(run, time, out, out$start) {
let step, n, manifold;
step = run.step;
n = run.system.n;
manifold = run.manifold;
if (time === step.time_new && step.time === step.time_new) {
copy(n, step.x, 0, out, out$start);
return;
}
if (step.ready === 0) {
if (step.moved === 2) {
find_interpolant$RK45(run, manifold.landed, 0);
} else {
find_interpolant$RK45(run, step.x, 0);
}
step.ready = 1;
}
interpolate$RK45(step, n, time, out, out$start);
if (step.moved === 2) {
bend(manifold, n, (time - step.time_old) / (step.time_new - step.time_old), out, out$start);
}
}
function find_interpolant$RK45(run, end, end$start) {
prepare_interpolant$RK45(run, run.system.n, run.system.rhs, end, end$start);
}
function prepare_interpolant$RK45(run, n, f, end, end$start) {
let step, env, t, h, clip;
step = run.step;
env = run.system.env;
t = step.time_old;
h = step.time_new - step.time_old;
clip = step.clip;
bends$RK45(n, f, t, h, clip, step.x_old, 0, end, end$start, step.work, 0, step.k, 0, env, 0, step.q, 0);
run.counts.evaluations = run.counts.evaluations + 0;
}
function bends$RK45(n, f, t, h, clip, x_old, x_old$start, x_new, x_new$start, y, y$start, k, k$start, env, env$start, q, q$start) {
polynomial$RK45(n, k, k$start, q, q$start);
}
function polynomial$RK45(n, k, k$start, q, q$start) {
let i, total;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
total = 0;
total = total + 1 * k[k$start + (0 * n + i)];
q[q$start + (0 * n + i)] = total;
}
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
total = 0;
total = total + -2.8535800653862835 * k[k$start + (0 * n + i)];
total = total + 4.023133379230305 * k[k$start + (2 * n + i)];
total = total + -3.7324019615885042 * k[k$start + (3 * n + i)];
total = total + 2.5548038301849423 * k[k$start + (4 * n + i)];
total = total + -1.3744241142186024 * k[k$start + (5 * n + i)];
total = total + 1.3824689317781436 * k[k$start + (6 * n + i)];
q[q$start + (1 * n + i)] = total;
}
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
total = 0;
total = total + 3.0717434641059005 * k[k$start + (0 * n + i)];
total = total + -6.249321565289 * k[k$start + (2 * n + i)];
total = total + 10.068970589843675 * k[k$start + (3 * n + i)];
total = total + -6.399112377351017 * k[k$start + (4 * n + i)];
total = total + 3.272657752246729 * k[k$start + (5 * n + i)];
total = total + -3.764937863556287 * k[k$start + (6 * n + i)];
q[q$start + (2 * n + i)] = total;
}
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
total = 0;
total = total + -1.1270175653862835 * k[k$start + (0 * n + i)];
total = total + 2.675424484351598 * k[k$start + (2 * n + i)];
total = total + -5.685526961588504 * k[k$start + (3 * n + i)];
total = total + 3.5219323679207912 * k[k$start + (4 * n + i)];
total = total + -1.7672812570757455 * k[k$start + (5 * n + i)];
total = total + 2.382468931778144 * k[k$start + (6 * n + i)];
q[q$start + (3 * n + i)] = total;
}
}
function interpolate$RK45(step, n, time, out, out$start) {
let h;
h = step.time_new - step.time_old;
point_inside$RK45(n, (time - step.time_old) / h, h, step.x_old, 0, step.q, 0, out, out$start);
}
function point_inside$RK45(n, s, h, x, x$start, q, q$start, out, out$start) {
let i, total;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
total = 0;
total = total * s + q[q$start + (3 * n + i)];
total = total * s + q[q$start + (2 * n + i)];
total = total * s + q[q$start + (1 * n + i)];
total = total * s + q[q$start + (0 * n + i)];
out[out$start + i] = x[x$start + i] + h * s * total;
}
}
function bend(manifold, n, s, out, out$start) {
let part, i;
part = s * s * (3 - 2 * s);
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
out[out$start + i] = out[out$start + i] + part * manifold.shift[i];
}
}
function go_on$RK45$True(run) {
let found, pace;
if (run.manifold.answer === 0) {
if (!take_step$RK45(run)) {
return 4;
}
run.motion.steps = run.motion.steps + 1;
}
if (true && run.manifold.count > 0) {
found = place_end(run);
if (found === 2) {
return 6;
}
if (found === 3) {
step_back(run);
return 4;
}
}
pace = 0;
if (run.counts.steps === run.pace.judged_at) {
pace = judge(run.pace, run.counts.steps, run.step.time);
}
if (pace === 2) {
step_back(run);
return 5;
}
if (pace === 1) {
run.budget = 0;
}
return -2;
}
function take_step$RK45(run) {
let step, n, longest, h, rejected, end, error;
step = run.step;
n = run.system.n;
longest = run.tolerances.max_step;
if (step.moved === 1) {
copy(n, step.k, 6 * n, step.k, 0);
} else {
if (step.moved === 2) {
copy(n, run.manifold.slope, 0, step.k, 0);
}
}
step.moved = 0;
h = step.h_next;
step.h_wanted = h;
if (h > longest) {
h = longest;
} else {
if (is_too_short(h, step.time)) {
h = shortest_step(step.time);
}
}
rejected = false;
while (true) {
if (is_too_short(h, step.time)) {
return false;
}
end = smaller(step.time + h, run.motion.stop);
step.h = end - step.time;
h = step.h;
error = run.system.attempt(run);
if (error < 1) {
step.h_next = h * growth$RK45(step, error, rejected);
run.counts.steps = run.counts.steps + 1;
run.linear.known = 0;
accept(step, end);
return true;
}
h = h * shrinking$RK45(error);
rejected = true;
run.counts.rejected = run.counts.rejected + 1;
}
}
function is_too_short(h, time) {
if (h >= 1e-14 * Math.abs(time) + 1e-306) {
return false;
}
return !(h >= shortest_step(time));
}
function shortest_step(time) {
return 10 * (nextafter$(time, Infinity) - time);
}
function growth$RK45(step, error, rejected) {
let factor, small, wanted;
factor = 10;
small = 5.8458509999999995e-06;
if (error > small) {
wanted = 0.9 * Math.pow(error, -0.2);
factor = larger(0.2, smaller(factor, wanted));
}
step.error_old = larger(error, 0.0001);
if (rejected) {
factor = smaller(factor, 1);
}
return factor;
}
function accept(step, end) {
let kept$0, kept$1, kept$2, old;
kept$0 = step.time;
kept$1 = end;
kept$2 = end;
step.time_old = kept$0;
step.time_new = kept$1;
step.time = kept$2;
old = step.x_old;
step.x_old = step.x;
step.x = step.x_new;
step.x_new = old;
step.moved = 1;
step.ready = 0;
}
function shrinking$RK45(error) {
if (!(error < Infinity)) {
return 0.2;
}
return larger(0.2, 0.9 * Math.pow(error, -0.2));
}
function place_end(run) {
let step, system, manifold, n, found, i, tolerances, moved;
step = run.step;
system = run.system;
manifold = run.manifold;
n = system.n;
found = place(manifold, n, step.time, step.clip, Infinity, step.x, 0, system.env, 0, step.work, 0);
if (found !== 1) {
manifold.pulls = 0;
} else {
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
manifold.shift[i] = step.x[i] - manifold.landed[i];
}
tolerances = run.tolerances;
moved = scaled_norm(n, manifold.shift, 0, step.x, 0, tolerances.rtol, 0, tolerances.atol, 0);
manifold.pulls = moved > 100 ? manifold.pulls + 1 : 0;
if (manifold.pulls === 5) {
run.budget = 0;
}
system.rhs(manifold.time, step.x, system.env, manifold.slope);
run.counts.evaluations = run.counts.evaluations + 1;
step.moved = 2;
if (!all_finite(n, manifold.slope, 0)) {
return 3;
}
}
return found;
}
function step_back(run) {
let step, new$;
step = run.step;
new$ = step.x;
step.x = step.x_old;
step.x_old = new$;
step.time = step.time_old;
step.h_next = step.h_wanted;
run.counts.steps = run.counts.steps - 1;
run.witnesses.known = 0;
}
function judge(pace, steps, time) {
let conspicuous;
pace.judged_at = steps + 1000;
pace.strides = pace.strides + 1;
pace.slow = makes_slow_progress(pace.marks, 0, pace.strides, 1000, time, pace.end, pace.most_steps, pace.deliberate);
if (pace.slow > 0) {
return 2;
}
conspicuous = is_conspicuous(pace.marks, 0, pace.strides, 1000, time, pace.end, pace.most_steps, pace.deliberate);
pace.marks[pace.strides % 20] = time;
return conspicuous ? 1 : 0;
}
function makes_slow_progress(marks, marks$start, strides, stride, time, end, most, wanted) {
let back, steps, advance, needed;
back = 0;
while (back < strides && back < 20) {
back = back + 1;
steps = 1 * back * stride;
advance = time - marks[marks$start + (strides - back) % 20];
needed = steps * steps * (end - time);
if (advance < 0.5 * steps * wanted && needed > most * 20 * stride * advance) {
return back;
}
}
return 0;
}
function is_conspicuous(marks, marks$start, strides, stride, time, end, most, wanted) {
let power, advance, steps;
power = 1;
while (power < strides) {
power = power * 2;
}
if (power !== strides) {
return false;
}
advance = time - marks[marks$start + (strides - 1) % 20];
steps = 1 * stride;
return advance < 0.5 * steps * wanted && 1000 * steps * (end - time) > most * advance;
}
function find_crossing$RK45(run) {
let witnesses, w, end, shortest, low, width, left, asked, leaving, unseen, k, high, count, found, last, last$start;
witnesses = run.witnesses;
w = witnesses.count;
end = run.step.time_new;
shortest = shortest_stretch(run.step.time_old, end);
low = run.step.time_old;
width = smaller(end - low, witnesses.longest);
left = 4000;
asked = 100000;
leaving = leaving_mask(witnesses);
unseen = leaving;
for (let k$at = 0, k$end = w; k$at < k$end; k$at++) {
k = k$at;
witnesses.peaks[k] = 0;
}
while (true) {
high = end_of_stretch(low, width, end);
if (width < witnesses.longest) {
left = left - 1;
}
asked = asked - 1;
if (asked <= 0) {
return 2;
}
count = profile$RK45(run, low, high, width > shortest);
if (!all_finite((count > 0 ? count : -count) * w, witnesses.samples, 0)) {
return 2;
}
if (left <= 0 || width <= shortest && may_miss(witnesses, count)) {
return 2;
}
if (count < 0) {
note_peaks(witnesses, -count);
width = larger(0.5 * (high - low), shortest);
continue;
}
unseen = still_unseen(run, unseen, count);
if (unseen < 0) {
return 2;
}
found = first_crossing$RK45(run, count, leaving);
if (found !== 0) {
return found;
}
last$start = witnesses.order[count - 1] * w;
last = witnesses.samples;
for (let k$at = 0, k$end = w; k$at < k$end; k$at++) {
k = k$at;
witnesses.first[k] = last[last$start + k];
}
if (high === end) {
forget_old_events(witnesses);
return 0;
}
low = high;
width = smaller(2 * width, witnesses.longest);
}
}
function shortest_stretch(start, end) {
return larger(9.5367431640625e-07 * (end - start), 1000000 * spacing(larger(Math.abs(start), Math.abs(end))));
}
function leaving_mask(witnesses) {
let mask, bit, k;
mask = 0;
bit = 1;
for (let k$at = 0, k$end = witnesses.count; k$at < k$end; k$at++) {
k = k$at;
if (witnesses.first[k] === 0) {
mask = mask + bit;
}
bit = bit * 2;
}
return mask;
}
function end_of_stretch(low, width, end) {
let high;
high = low + width;
if (high + 0.01 * width < end && high > low) {
return high;
}
return end;
}
function profile$RK45(run, start, end, shorten) {
let witnesses, w, width, middle, leaving, k, close, delta, count, some;
witnesses = run.witnesses;
w = witnesses.count;
width = end - start;
middle = start + 0.4721359549995794 * width;
witnesses.instants[0] = start;
witnesses.instants[1] = middle;
witnesses.instants[2] = end;
leaving = false;
for (let k$at = 0, k$end = w; k$at < k$end; k$at++) {
k = k$at;
witnesses.samples[k] = witnesses.first[k];
if (witnesses.first[k] === 0) {
leaving = true;
}
}
witness_values$RK45(run, middle, witnesses.samples, w);
witness_values$RK45(run, end, witnesses.samples, 2 * w);
close = smaller(100000 * spacing(larger(Math.abs(start), Math.abs(end))), 0.25 * width);
delta = larger(1e-07 * width, close);
if (leaving) {
for (let k$at = 0, k$end = w; k$at < k$end; k$at++) {
k = k$at;
witnesses.slopes[3 * w + k] = witnesses.first[k];
if (witnesses.first[k] === 0 && witnesses.on_surface[k] === 1) {
witnesses.slopes[3 * w + k] = witnesses.surface[k];
}
}
slope$RK45(run, start, close, witnesses.slopes, 3 * w, witnesses.slopes, 0);
} else {
slope$RK45(run, start, delta, witnesses.samples, 0, witnesses.slopes, 0);
}
slope$RK45(run, end, -delta, witnesses.samples, 2 * w, witnesses.slopes, 2 * w);
count = 3;
if (all_far(witnesses, width)) {
sort_samples(witnesses, count);
return count;
}
slope$RK45(run, middle, delta, witnesses.samples, w, witnesses.slopes, w);
some = false;
for (let k$at = 0, k$end = w; k$at < k$end; k$at++) {
k = k$at;
witnesses.fast[k] = varies_fast(witnesses.samples[k], witnesses.samples[w + k], witnesses.samples[2 * w + k], width * witnesses.slopes[k], width * witnesses.slopes[w + k], width * witnesses.slopes[2 * w + k]);
if (witnesses.fast[k] > 0) {
some = true;
}
}
if (some && shorten) {
return -count;
}
if (looks_closer(witnesses)) {
count = look_closer$RK45(run);
if (count < 0 && shorten) {
return count;
}
count = 5;
}
return add_extrema$RK45(run, count);
}
function witness_values$RK45(run, time, out, out$start) {
let point;
point = run.step.point;
state_inside$RK45(run, time, point, 0);
run.witnesses.values(time, point, run.system.env, view$(out, out$start));
}
function slope$RK45(run, time, toward, here, here$start, out, out$start) {
let k;
witness_values$RK45(run, time + toward, out, out$start);
for (let k$at = 0, k$end = run.witnesses.count; k$at < k$end; k$at++) {
k = k$at;
out[out$start + k] = (out[out$start + k] - here[here$start + k]) / toward;
}
}
function all_far(witnesses, width) {
let w, k, low, middle, high, d_low, d_high;
w = witnesses.count;
for (let k$at = 0, k$end = w; k$at < k$end; k$at++) {
k = k$at;
witnesses.fast[k] = 0;
low = witnesses.samples[k];
middle = witnesses.samples[w + k];
high = witnesses.samples[2 * w + k];
d_low = width * witnesses.slopes[k];
d_high = width * witnesses.slopes[2 * w + k];
if (!is_far(low, middle, high, d_low, d_high)) {
return false;
}
}
return true;
}
function is_far(low, middle, high, d_low, d_high) {
if (low * middle <= 0 || middle * high <= 0 || is_near(low, high, d_low, d_high)) {
return false;
}
return !does_not_fit(low, middle, high, d_low, d_high, 0, Math.abs(d_low) + Math.abs(d_high));
}
function is_near(low, high, d_low, d_high) {
return smaller(Math.abs(low), Math.abs(high)) <= Math.abs(d_low) + Math.abs(d_high);
}
function does_not_fit(low, middle, high, d_low, d_high, misfit, slopes) {
let rise, a, b, total, changes;
rise = high - low;
a = d_low + d_high - 2 * rise;
b = 3 * rise - 2 * d_low - d_high;
total = misfit + Math.abs(low + 0.4721359549995794 * (d_low + 0.4721359549995794 * (b + 0.4721359549995794 * a)) - middle);
if (total <= 0.05 * (Math.abs(middle - low) + Math.abs(high - middle)) + 0.003 * slopes) {
return false;
}
if (slopes > 100000 * larger(Math.abs(low), larger(Math.abs(middle), Math.abs(high)))) {
return false;
}
changes = low * middle < 0 || middle * high < 0;
return changes || smaller(Math.abs(low), smaller(Math.abs(middle), Math.abs(high))) < 8 * total;
}
function sort_samples(witnesses, count) {
let e, place;
for (let e$at = 0, e$end = count; e$at < e$end; e$at++) {
e = e$at;
place = e;
while (place > 0 && witnesses.instants[witnesses.order[place - 1]] > witnesses.instants[e]) {
witnesses.order[place] = witnesses.order[place - 1];
place = place - 1;
}
witnesses.order[place] = e;
}
}
function varies_fast(low, middle, high, d_low, d_middle, d_high) {
let rise, a, b, misfit, slopes;
rise = high - low;
a = d_low + d_high - 2 * rise;
b = 3 * rise - 2 * d_low - d_high;
misfit = Math.abs(d_low + 0.4721359549995794 * (2 * b + 1.4164078649987382 * a) - d_middle);
slopes = Math.abs(d_low) + Math.abs(d_middle) + Math.abs(d_high);
if (!does_not_fit(low, middle, high, d_low, d_high, 0.25 * misfit, slopes)) {
return 0;
}
return slopes > 2 * (Math.abs(middle - low) + Math.abs(high - middle)) ? 2 : 1;
}
function looks_closer(witnesses) {
let w, k, low, high, width, d_low, d_high;
w = witnesses.count;
for (let k$at = 0, k$end = w; k$at < k$end; k$at++) {
k = k$at;
low = witnesses.samples[0 * w + k];
high = witnesses.samples[1 * w + k];
width = witnesses.instants[1] - witnesses.instants[0];
d_low = witnesses.slopes[0 * w + k] * width;
d_high = witnesses.slopes[1 * w + k] * width;
if (is_near(low, high, d_low, d_high)) {
return true;
}
low = witnesses.samples[1 * w + k];
high = witnesses.samples[2 * w + k];
width = witnesses.instants[2] - witnesses.instants[1];
d_low = witnesses.slopes[1 * w + k] * width;
d_high = witnesses.slopes[2 * w + k] * width;
if (is_near(low, high, d_low, d_high)) {
return true;
}
}
return false;
}
function look_closer$RK45(run) {
let witnesses, w, left, right, inside, inside$start, count, k;
witnesses = run.witnesses;
w = witnesses.count;
left = witnesses.instants[0];
right = witnesses.instants[1];
witnesses.instants[3] = left + 0.4721359549995794 * (right - left);
inside$start = 3 * w;
inside = witnesses.samples;
witness_values$RK45(run, witnesses.instants[3], inside, inside$start);
left = witnesses.instants[1];
right = witnesses.instants[2];
witnesses.instants[4] = left + 0.4721359549995794 * (right - left);
inside$start = 4 * w;
inside = witnesses.samples;
witness_values$RK45(run, witnesses.instants[4], inside, inside$start);
count = 5;
for (let k$at = 0, k$end = w; k$at < k$end; k$at++) {
k = k$at;
if (piece_varies_fast(witnesses, k, 0) || piece_varies_fast(witnesses, k, 1)) {
count = -5;
}
}
return count;
}
function piece_varies_fast(witnesses, k, piece) {
let w, low, high, inner, width, d_low, d_high;
w = witnesses.count;
low = witnesses.samples[piece * w + k];
high = witnesses.samples[(piece + 1) * w + k];
inner = witnesses.samples[(3 + piece) * w + k];
width = witnesses.instants[piece + 1] - witnesses.instants[piece];
d_low = witnesses.slopes[piece * w + k] * width;
d_high = witnesses.slopes[(piece + 1) * w + k] * width;
return does_not_fit(low, inner, high, d_low, d_high, 0, Math.abs(d_low) + Math.abs(d_high));
}
function add_extrema$RK45(run, count) {
let witnesses, w, left, right, k, low, high, d0, d1, a, b, root, q, s;
witnesses = run.witnesses;
w = witnesses.count;
left = witnesses.instants[0];
right = witnesses.instants[1];
for (let k$at = 0, k$end = w; k$at < k$end; k$at++) {
k = k$at;
low = witnesses.samples[0 * w + k];
high = witnesses.samples[1 * w + k];
d0 = witnesses.slopes[0 * w + k] * (right - left);
d1 = witnesses.slopes[1 * w + k] * (right - left);
a = d0 + d1 - 2 * (high - low);
b = 3 * (high - low) - 2 * d0 - d1;
root = Math.sqrt(b * b - 3 * a * d0);
q = b >= 0 ? -(b + root) : -(b - root);
s = q / (3 * a);
if (is_suspect(s, low, high, d0, b, a)) {
count = add_sample$RK45(run, left + s * (right - left), count);
}
s = d0 / q;
if (is_suspect(s, low, high, d0, b, a)) {
count = add_sample$RK45(run, left + s * (right - left), count);
}
}
left = witnesses.instants[1];
right = witnesses.instants[2];
for (let k$at = 0, k$end = w; k$at < k$end; k$at++) {
k = k$at;
low = witnesses.samples[1 * w + k];
high = witnesses.samples[2 * w + k];
d0 = witnesses.slopes[1 * w + k] * (right - left);
d1 = witnesses.slopes[2 * w + k] * (right - left);
a = d0 + d1 - 2 * (high - low);
b = 3 * (high - low) - 2 * d0 - d1;
root = Math.sqrt(b * b - 3 * a * d0);
q = b >= 0 ? -(b + root) : -(b - root);
s = q / (3 * a);
if (is_suspect(s, low, high, d0, b, a)) {
count = add_sample$RK45(run, left + s * (right - left), count);
}
s = d0 / q;
if (is_suspect(s, low, high, d0, b, a)) {
count = add_sample$RK45(run, left + s * (right - left), count);
}
}
sort_samples(witnesses, count);
return count;
}
function is_suspect(s, low, high, d0, b, a) {
let peak, scale;
if (!(s > 1e-12 && s < 0.999999999999)) {
return false;
}
peak = low + s * (d0 + s * (b + s * a));
scale = Math.abs(d0) + Math.abs(b) + Math.abs(a);
return peak * low <= 0 || peak * high <= 0 || Math.abs(peak) < 0.001 * scale;
}
function add_sample$RK45(run, time, count) {
let witnesses, e;
witnesses = run.witnesses;
for (let e$at = 0, e$end = count; e$at < e$end; e$at++) {
e = e$at;
if (witnesses.instants[e] === time) {
return count;
}
}
witnesses.instants[count] = time;
witness_values$RK45(run, time, witnesses.samples, count * witnesses.count);
return count + 1;
}
function may_miss(witnesses, count) {
let w, k, least, most, e, steady, apparent;
w = witnesses.count;
for (let k$at = 0, k$end = w; k$at < k$end; k$at++) {
k = k$at;
least = witnesses.samples[k];
most = witnesses.samples[k];
for (let e$at = 0, e$end = count; e$at < e$end; e$at++) {
e = e$at;
least = smaller(least, witnesses.samples[e * w + k]);
most = larger(most, witnesses.samples[e * w + k]);
}
steady = least > 0 || most < 0;
apparent = witnesses.peaks[k] > 0 && most - least > 0.001 * witnesses.peaks[k];
if (witnesses.fast[k] === 2 && steady && apparent) {
return true;
}
}
return false;
}
function note_peaks(witnesses, count) {
let w, e, k;
w = witnesses.count;
for (let e$at = 0, e$end = count; e$at < e$end; e$at++) {
e = e$at;
for (let k$at = 0, k$end = w; k$at < k$end; k$at++) {
k = k$at;
witnesses.peaks[k] = larger(witnesses.peaks[k], Math.abs(witnesses.samples[e * w + k]));
}
}
}
function still_unseen(run, unseen, count) {
let step, witnesses, w, mask, bit, k, position, side, crossing, moves, turned, instant;
step = run.step;
witnesses = run.witnesses;
w = witnesses.count;
mask = 0;
bit = 1;
for (let k$at = 0, k$end = w; k$at < k$end; k$at++) {
k = k$at;
if (Math.floor(unseen / bit) % 2 === 1) {
position = 1;
while (position < count && witnesses.samples[witnesses.order[position] * w + k] === 0) {
position = position + 1;
}
if (position === count) {
mask = mask + bit;
} else {
side = witnesses.samples[witnesses.order[position] * w + k];
crossing = triggers(witnesses.directions[k], -side, side);
if (crossing) {
witnesses.values(step.time_old, step.x_old, run.system.env, witnesses.slopes);
moves = tendency(run, k, step.time_old, step.x_old, 0, witnesses.slopes[k]);
if (moves * side < 0) {
return -1;
}
turned = witnesses.jumped * witnesses.turning[k] === 1;
if (moves === 0 && turned && witnesses.on_surface[k] === 1) {
instant = witnesses.instants[witnesses.order[position]];
if (begins_at_rest(run, k, instant, side)) {
return -1;
}
}
}
}
}
bit = bit * 2;
}
return mask;
}
function tendency(run, k, time, x, x$start, base) {
let step, witnesses, staged, there, there$start, reach, ahead, known, i, change;
step = run.step;
witnesses = run.witnesses;
staged = run.updates.staged;
there$start = witnesses.count;
there = witnesses.slopes;
run.system.rhs(smaller(time, step.clip), view$(x, x$start), run.system.env, step.x_new);
run.counts.evaluations = run.counts.evaluations + 1;
reach = 0.001 * (step.time_new - step.time_old);
ahead = first_distance(step.time_old, step.time_new);
known = 0;
while (ahead > 0 && ahead <= reach) {
for (let i$at = 0, i$end = run.system.n; i$at < i$end; i$at++) {
i = i$at;
staged[i] = x[x$start + i] + ahead * step.x_new[i];
}
witnesses.values(time + ahead, staged, run.system.env, view$(there, there$start));
change = there[there$start + k] - base;
if (is_clear(known, change)) {
return change > 0 ? 1 : -1;
}
known = change;
ahead = ahead * 8;
}
return 0;
}
function first_distance(start, end) {
let close;
close = 100000 * spacing(larger(Math.abs(start), Math.abs(end)));
return smaller(close, 0.001 * (end - start) / 8);
}
function is_clear(known, change) {
return known * change > 0 && Math.abs(change) >= 4 * Math.abs(known);
}
function begins_at_rest(run, k, time, value) {
let step, witnesses, staged, there, there$start, ahead, i, base, predicted;
step = run.step;
witnesses = run.witnesses;
staged = run.updates.staged;
there$start = witnesses.count;
there = witnesses.slopes;
ahead = time - step.time_old;
for (let i$at = 0, i$end = run.system.n; i$at < i$end; i$at++) {
i = i$at;
staged[i] = step.x_old[i] + ahead * step.x_new[i];
}
witnesses.values(time, staged, run.system.env, view$(there, there$start));
base = witnesses.slopes[k];
predicted = there[there$start + k] - base;
return Math.abs(predicted) < 0.001 * Math.abs(value - base);
}
function first_crossing$RK45(run, count, leaving) {
let witnesses, w, best, k, at, time, position, before, before$start, mask, bit, recent, moves;
witnesses = run.witnesses;
w = witnesses.count;
best = Infinity;
for (let k$at = 0, k$end = w; k$at < k$end; k$at++) {
k = k$at;
at = first_trigger(witnesses, k, count);
if (at > 0 && witnesses.instants[witnesses.order[at - 1]] < best) {
time = narrow$RK45(run, k, at);
if (!(time < Infinity)) {
return 2;
}
best = smaller(best, time);
}
}
if (best === Infinity) {
return 0;
}
position = 0;
while (position < count - 1 && witnesses.instants[witnesses.order[position + 1]] < best) {
position = position + 1;
}
before$start = witnesses.order[position] * w;
before = witnesses.samples;
witness_values$RK45(run, best, witnesses.slopes, 0);
mask = 0;
bit = 1;
for (let k$at = 0, k$end = w; k$at < k$end; k$at++) {
k = k$at;
if (triggers(witnesses.directions[k], before[before$start + k], witnesses.slopes[k])) {
mask = mask + bit;
recent = Math.floor(leaving / bit) % 2 === 1 || witnesses.on_surface[k] > 0;
if (recent && witnesses.turning[k] === 1) {
moves = tendency(run, k, best, run.step.point, 0, witnesses.slopes[k]);
if (moves * before[before$start + k] > 0) {
return 2;
}
}
}
bit = bit * 2;
}
bit = 1;
forget_old_events(witnesses);
for (let k$at = 0, k$end = w; k$at < k$end; k$at++) {
k = k$at;
witnesses.first[k] = witnesses.slopes[k];
if (Math.floor(mask / bit) % 2 === 1) {
witnesses.on_surface[k] = 1;
witnesses.surface[k] = witnesses.slopes[k];
witnesses.first[k] = 0;
}
bit = bit * 2;
}
witnesses.crossed = mask;
witnesses.time_crossed = best;
witnesses.jumped = 0;
return 1;
}
function first_trigger(witnesses, k, count) {
let w, position, before, after;
w = witnesses.count;
for (let position$at = 1, position$end = count; position$at < position$end; position$at++) {
position = position$at;
before = witnesses.samples[witnesses.order[position - 1] * w + k];
after = witnesses.samples[witnesses.order[position] * w + k];
if (triggers(witnesses.directions[k], before, after)) {
return position;
}
}
return 0;
}
function narrow$RK45(run, k, at) {
let witnesses, w, low, high, f_low, f_high, resolution, root, margin, time, value, beyond;
witnesses = run.witnesses;
w = witnesses.count;
low = witnesses.instants[witnesses.order[at - 1]];
high = witnesses.instants[witnesses.order[at]];
f_low = witnesses.samples[witnesses.order[at - 1] * w + k];
f_high = witnesses.samples[witnesses.order[at] * w + k];
resolution = 4 * spacing(larger(Math.abs(low), Math.abs(high)));
start_search(witnesses.search, 0, low, high, f_low, f_high);
while (next_look(witnesses.search, 0, resolution)) {
witnesses.search[1] = value_at$RK45(run, k, witnesses.search[0]);
}
root = witnesses.search[0];
margin = 0;
time = smaller(root + margin, high);
while (time < high) {
value = value_at$RK45(run, k, time);
if (value * 0 !== 0) {
return Infinity;
}
if (triggers(witnesses.directions[k], f_low, value)) {
beyond = smaller(time + resolution, high);
if (value !== 0 || witnesses.turning[k] === 0) {
return time;
}
if (value_at$RK45(run, k, beyond) * f_low < 0) {
return beyond;
}
return time;
}
margin = larger(resolution, 2 * margin);
time = smaller(root + margin, high);
}
return high;
}
function start_search(search, search$start, low, high, f_low, f_high) {
search[search$start + 2] = low;
search[search$start + 3] = f_low;
search[search$start] = high;
search[search$start + 1] = f_high;
search[search$start + 4] = 0;
search[search$start + 5] = 0;
search[search$start + 6] = 0;
search[search$start + 7] = 0;
search[search$start + 8] = 0;
}
function next_look(search, search$start, resolution) {
let now, value, delta, half, trial;
if (search[search$start + 1] === 0) {
return false;
}
if (search[search$start + 3] !== 0 && search[search$start + 3] < 0 !== search[search$start + 1] < 0) {
search[search$start + 4] = search[search$start + 2];
search[search$start + 5] = search[search$start + 3];
search[search$start + 7] = search[search$start] - search[search$start + 2];
search[search$start + 6] = search[search$start + 7];
}
if (Math.abs(search[search$start + 5]) < Math.abs(search[search$start + 1])) {
search[search$start + 2] = search[search$start];
search[search$start] = search[search$start + 4];
search[search$start + 4] = search[search$start + 2];
search[search$start + 3] = search[search$start + 1];
search[search$start + 1] = search[search$start + 5];
search[search$start + 5] = search[search$start + 3];
}
now = search[search$start];
value = search[search$start + 1];
delta = 0.5 * (resolution + 1e-15 * Math.abs(now));
half = 0.5 * (search[search$start + 4] - now);
if (value === 0 || Math.abs(half) < delta) {
return false;
}
trial = half;
if (search[search$start + 8] < 25) {
trial = interpolated(search, search$start, half, delta);
}
if (trial === half) {
search[search$start + 7] = half;
} else {
search[search$start + 7] = search[search$start + 6];
}
search[search$start + 6] = trial;
search[search$start + 8] = search[search$start + 8] + 1;
search[search$start + 2] = now;
search[search$start + 3] = value;
if (Math.abs(trial) > delta) {
search[search$start] = now + trial;
} else {
if (half > 0) {
search[search$start] = now + delta;
} else {
search[search$start] = now - delta;
}
}
return true;
}
function interpolated(search, search$start, half, delta) {
let now, value, before, f_before, step_before, other, f_other, trial, d_before, d_other;
now = search[search$start];
value = search[search$start + 1];
before = search[search$start + 2];
f_before = search[search$start + 3];
step_before = Math.abs(search[search$start + 7]);
if (!(step_before > delta && Math.abs(value) < Math.abs(f_before))) {
return half;
}
other = search[search$start + 4];
f_other = search[search$start + 5];
if (before === other) {
trial = -value * (now - before) / (value - f_before);
} else {
d_before = (f_before - value) / (before - now);
d_other = (f_other - value) / (other - now);
trial = -value * (f_other * d_other - f_before * d_before) / (d_other * d_before * (f_other - f_before));
}
if (2 * Math.abs(trial) < smaller(step_before, 3 * Math.abs(half) - delta)) {
return trial;
}
return half;
}
function value_at$RK45(run, k, time) {
let witnesses, value;
witnesses = run.witnesses;
witness_values$RK45(run, time, witnesses.slopes, 0);
value = witnesses.slopes[k];
return value;
}
function forget_old_events(witnesses) {
let k;
for (let k$at = 0, k$end = witnesses.count; k$at < k$end; k$at++) {
k = k$at;
if (witnesses.on_surface[k] > 0) {
witnesses.on_surface[k] = witnesses.on_surface[k] + 1;
if (witnesses.on_surface[k] > 8) {
witnesses.on_surface[k] = 0;
}
}
}
}
function cut$RK45(run) {
let step;
step = run.step;
state_inside$RK45(run, run.witnesses.time_crossed, step.point, 0);
copy(run.system.n, step.point, 0, step.x, 0);
step.time = run.witnesses.time_crossed;
}
function is_stiff$RK45(run) {
let step, stiffness, ahead;
step = run.step;
stiffness = run.stiffness;
stiffness.looked = stiffness.looked + 1;
if (stiffness.suspicious === 0 && stiffness.looked % 10 !== 0) {
return false;
}
if (limited_by_stability$RK45(run)) {
stiffness.suspicious = stiffness.suspicious + 1;
} else {
stiffness.suspicious = 0;
}
ahead = (run.pace.end - step.time) / (step.time - step.time_old);
return stiffness.suspicious >= 25 && ahead > 1000;
}
function limited_by_stability$RK45(run) {
let n, x, k, rtol, atol, changes, distances, i, weight, change, distance, limited;
n = run.system.n;
x = run.step.x;
k = run.step.k;
rtol = run.tolerances.rtol;
atol = run.tolerances.atol;
changes = 0;
distances = 0;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
weight = atol[i] + rtol[i] * Math.abs(x[i]);
change = (k[6 * n + i] - k[5 * n + i]) / weight;
distance = 0;
distance = distance + -2.755129419191919 * k[0 * n + i];
distance = distance + 10.757575757575758 * k[1 * n + i];
distance = distance + -8.45718641945057 * k[2 * n + i];
distance = distance + 0.37263257575757575 * k[3 * n + i];
distance = distance + -0.048844875643224706 * k[4 * n + i];
distance = distance + 0.13095238095238096 * k[5 * n + i];
distance = distance / weight;
changes = changes + change * change;
distances = distances + distance * distance;
}
limited = changes > 6.760000000000001 * distances;
return limited;
}
function RK45_resample(run, steps, spans, spans$start, states, states$start, discrete, discrete$start, counts, counts$start, times, times$start, out, out$start) {
let step, n, m, done, s;
step = run.step;
n = run.system.n;
m = run.system.m;
done = 0;
for (let s$at = 0, s$end = steps; s$at < s$end; s$at++) {
s = s$at;
step.time = spans[spans$start + 3 * s];
step.time_new = spans[spans$start + (3 * s + 1)];
step.h = step.time_new - step.time;
step.clip = spans[spans$start + (3 * s + 2)];
copy(n, states, states$start + s * n, step.x, 0);
copy(m, discrete, discrete$start + s * m, run.system.env, 0);
resample$RK45(run, counts[counts$start + s], times, times$start + done, out, out$start + done * n);
done = done + counts[counts$start + s];
}
}
function resample$RK45(run, count, times, times$start, out, out$start) {
let step, end, c;
step = run.step;
end = step.time_new;
run.system.rhs(smaller(step.time, step.clip), step.x, run.system.env, step.k);
run.linear.known = 0;
run.system.attempt(run);
accept(step, end);
if (run.manifold.count > 0) {
place_end(run);
}
for (let c$at = 0, c$end = count; c$at < c$end; c$at++) {
c = c$at;
state_inside$RK45(run, times[times$start + c], out, out$start + c * run.system.n);
}
}
function RK45_attempt(run) {
return attempt$RK45(run, run.system.n, run.system.rhs);
}
function attempt$RK45(run, n, f) {
let step;
step = run.step;
return try_step$RK45(run, n, f, step.x, 0, step.work, 0, step.x_new, 0, step.k, 0);
}
function try_step$RK45(run, n, f, x, x$start, y, y$start, x_new, x_new$start, k, k$start) {
let t, h, clip, env;
t = run.step.time;
h = run.step.h;
clip = run.step.clip;
env = run.system.env;
stage$RK45$1(n, h, x, x$start, k, k$start, y, y$start);
f(smaller(t + 0.2 * h, clip), view$(y, y$start), env, view$(k, k$start + 1 * n));
stage$RK45$2(n, h, x, x$start, k, k$start, y, y$start);
f(smaller(t + 0.3 * h, clip), view$(y, y$start), env, view$(k, k$start + 2 * n));
stage$RK45$3(n, h, x, x$start, k, k$start, y, y$start);
f(smaller(t + 0.8 * h, clip), view$(y, y$start), env, view$(k, k$start + 3 * n));
stage$RK45$4(n, h, x, x$start, k, k$start, y, y$start);
f(smaller(t + 0.8888888888888888 * h, clip), view$(y, y$start), env, view$(k, k$start + 4 * n));
stage$RK45$5(n, h, x, x$start, k, k$start, y, y$start);
f(smaller(t + 1 * h, clip), view$(y, y$start), env, view$(k, k$start + 5 * n));
stage$RK45$6(n, h, x, x$start, k, k$start, x_new, x_new$start);
f(smaller(t + h, clip), view$(x_new, x_new$start), env, view$(k, k$start + 6 * n));
run.counts.evaluations = run.counts.evaluations + 6;
return error_norm$RK45(n, h, x, x$start, x_new, x_new$start, k, k$start, run.tolerances.rtol, 0, run.tolerances.atol, 0);
}
function stage$RK45$1(n, h, x, x$start, k, k$start, y, y$start) {
let i, change;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
change = 0;
change = change + 0.2 * k[k$start + (0 * n + i)];
y[y$start + i] = x[x$start + i] + h * change;
}
}
function stage$RK45$2(n, h, x, x$start, k, k$start, y, y$start) {
let i, change;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
change = 0;
change = change + 0.075 * k[k$start + (0 * n + i)];
change = change + 0.225 * k[k$start + (1 * n + i)];
y[y$start + i] = x[x$start + i] + h * change;
}
}
function stage$RK45$3(n, h, x, x$start, k, k$start, y, y$start) {
let i, change;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
change = 0;
change = change + 0.9777777777777777 * k[k$start + (0 * n + i)];
change = change + -3.7333333333333334 * k[k$start + (1 * n + i)];
change = change + 3.5555555555555554 * k[k$start + (2 * n + i)];
y[y$start + i] = x[x$start + i] + h * change;
}
}
function stage$RK45$4(n, h, x, x$start, k, k$start, y, y$start) {
let i, change;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
change = 0;
change = change + 2.9525986892242035 * k[k$start + (0 * n + i)];
change = change + -11.595793324188385 * k[k$start + (1 * n + i)];
change = change + 9.822892851699436 * k[k$start + (2 * n + i)];
change = change + -0.2908093278463649 * k[k$start + (3 * n + i)];
y[y$start + i] = x[x$start + i] + h * change;
}
}
function stage$RK45$5(n, h, x, x$start, k, k$start, y, y$start) {
let i, change;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
change = 0;
change = change + 2.8462752525252526 * k[k$start + (0 * n + i)];
change = change + -10.757575757575758 * k[k$start + (1 * n + i)];
change = change + 8.906422717743473 * k[k$start + (2 * n + i)];
change = change + 0.2784090909090909 * k[k$start + (3 * n + i)];
change = change + -0.2735313036020583 * k[k$start + (4 * n + i)];
y[y$start + i] = x[x$start + i] + h * change;
}
}
function stage$RK45$6(n, h, x, x$start, k, k$start, y, y$start) {
let i, change;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
change = 0;
change = change + 0.09114583333333333 * k[k$start + (0 * n + i)];
change = change + 0.44923629829290207 * k[k$start + (2 * n + i)];
change = change + 0.6510416666666666 * k[k$start + (3 * n + i)];
change = change + -0.322376179245283 * k[k$start + (4 * n + i)];
change = change + 0.13095238095238096 * k[k$start + (5 * n + i)];
y[y$start + i] = x[x$start + i] + h * change;
}
}
function error_norm$RK45(n, h, x, x$start, x_new, x_new$start, k, k$start, rtol, rtol$start, atol, atol$start) {
let total, total_3, check, i, error, error_3, unseen, scale, norm;
total = 0;
total_3 = 0;
check = 0;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
error = 0;
error_3 = 0;
unseen = 0;
error = error + -0.0012326388888888888 * k[k$start + (0 * n + i)];
unseen = unseen + k[k$start + (1 * n + i)];
error = error + 0.0042527702905061394 * k[k$start + (2 * n + i)];
error = error + -0.03697916666666667 * k[k$start + (3 * n + i)];
error = error + 0.05086379716981132 * k[k$start + (4 * n + i)];
error = error + -0.0419047619047619 * k[k$start + (5 * n + i)];
error = error + 0.025 * k[k$start + (6 * n + i)];
scale = atol[atol$start + i] + larger(Math.abs(x[x$start + i]), Math.abs(x_new[x_new$start + i])) * rtol[rtol$start + i];
error = h * error / scale;
total = total + error * error;
error_3 = h * error_3 / scale;
total_3 = total_3 + error_3 * error_3;
check = check + unseen * 0;
}
norm = Math.sqrt(total / n) + check;
return norm;
}
function Rodas5P_advance(run) {
let begun, status;
if (run.motion.moving === 0) {
find_ticks(run.clocks, run.step.time);
}
while (true) {
if (run.motion.moving === 0) {
begun = set_out$Rodas5P$True(run);
if (begun !== -1) {
return begun;
}
}
status = move$Rodas5P$True(run);
if (status === 1 || status >= 4) {
return status;
}
finish_motion(run);
if (status !== -1) {
return status;
}
if (run.step.time >= run.boundary) {
return 0;
}
if (run.step.time === run.jump && run.clocks.breaking === 0) {
return 2;
}
if (!has_room(run.rows)) {
return 1;
}
}
}
function set_out$Rodas5P$True(run) {
let found;
if (!update(run, 1) || !update(run, 0)) {
return 4;
}
if (run.updates.settles === 1 && !settle(run)) {
return 4;
}
if (run.witnesses.known === 1 && run.witnesses.stirred === 1) {
found = follow_jumps(run);
if (found !== -1) {
return found;
}
}
if (run.manifold.count > 0) {
found = place_start(run);
if (found !== -1) {
return found;
}
}
return begin_motion$Rodas5P$True(run) ? -1 : 4;
}
function begin_motion$Rodas5P$True(run) {
let step, motion, kept$2, kept$3;
step = run.step;
motion = run.motion;
if (run.clocks.breaking === 1) {
pass_break(run);
}
motion.stop = next_stop(run.clocks, run.rows.stepwise, smaller(run.boundary, run.jump));
step.clip = Infinity;
if (motion.stop === run.jump) {
step.clip = nextafter$(motion.stop, -Infinity);
}
if (!(motion.stop - step.time > 4 * spacing(step.time))) {
return false;
}
note_change(run);
kept$2 = step.time;
kept$3 = step.time;
step.time_old = kept$2;
step.time_new = kept$3;
run.witnesses.crossed = 0;
motion.steps = 0;
begin$Rodas5P(run);
if (!all_finite(run.system.n, step.k, 0)) {
return false;
}
if (true && run.witnesses.count > 0 && !first_values(run)) {
return false;
}
motion.moving = 1;
return true;
}
function begin$Rodas5P(run) {
let step, longest, interval;
step = run.step;
longest = run.tolerances.max_step;
run.counts.restarts = run.counts.restarts + 1;
run.system.rhs(smaller(step.time, step.clip), step.x, run.system.env, step.k);
run.counts.evaluations = run.counts.evaluations + 1;
step.moved = 0;
run.linear.known = 0;
step.ready = 0;
step.error_old = 0.0001;
step.h_first = step.h_next;
interval = run.motion.stop - step.time;
if (step.h_next > 0) {
step.h_next = smaller(step.h_next, smaller(longest, interval));
} else {
step.h_next = initial_step$Rodas5P(run, interval);
}
}
function initial_step$Rodas5P(run, interval) {
let step, rtol, atol, n, x, k, y, d0, d1, h, i, d2, later;
step = run.step;
rtol = run.tolerances.rtol;
atol = run.tolerances.atol;
n = run.system.n;
x = step.x;
k = step.k;
y = step.work;
d0 = scaled_norm(n, x, 0, x, 0, rtol, 0, atol, 0);
d1 = scaled_norm(n, k, 0, x, 0, rtol, 0, atol, 0);
h = 1e-06;
if (d0 >= 1e-05 && d1 >= 1e-05) {
h = 0.01 * d0 / d1;
}
h = smaller(h, interval);
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
y[i] = x[i] + h * k[i];
}
run.system.rhs(smaller(step.time + h, step.clip), y, run.system.env, step.x_new);
run.counts.evaluations = run.counts.evaluations + 1;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
step.x_new[i] = step.x_new[i] - k[i];
}
d2 = scaled_norm(n, step.x_new, 0, x, 0, rtol, 0, atol, 0) / h;
if (!(d2 < Infinity)) {
d2 = d1;
}
later = larger(1e-06, h * 0.001);
if (d1 > 1e-15 || d2 > 1e-15) {
later = Math.pow(0.01 / larger(d1, d2), 0.2);
}
return smaller(smaller(100 * h, later), smaller(interval, run.tolerances.max_step));
}
function move$Rodas5P$True(run) {
let motion, found;
motion = run.motion;
while (true) {
if (motion.unpublished === 1) {
if (!publish$Rodas5P(run)) {
return 1;
}
motion.unpublished = 0;
if (motion.verdict !== -2) {
return motion.verdict;
}
}
if (run.budget <= 0 || !has_room(run.rows)) {
return 1;
}
run.budget = run.budget - 1;
motion.verdict = go_on$Rodas5P$True(run);
if (motion.verdict !== -2) {
return motion.verdict;
}
found = 0;
if (true && run.witnesses.count > 0) {
found = find_crossing$Rodas5P(run);
}
if (found === 2) {
step_back(run);
return 4;
}
motion.unpublished = 1;
if (found === 1) {
cut$Rodas5P(run);
motion.verdict = cross(run.witnesses, run.updates);
} else {
if (run.step.time === motion.stop) {
motion.verdict = -1;
} else {
if (run.stiffness.watching === 1 && is_stiff$Rodas5P(run)) {
motion.verdict = 3;
}
}
}
}
}
function publish$Rodas5P(run) {
let step, clocks, rows, mask, time;
step = run.step;
clocks = run.clocks;
rows = run.rows;
mask = 0;
while (clocks.publishes === 1 && mask === 0) {
time = next_publish(clocks);
if (time > step.time) {
break;
}
if (!has_room(rows)) {
return false;
}
if (time === step.time) {
mask = due_publishes(clocks, time);
} else {
state_inside$Rodas5P(run, time, step.point, 0);
add_row(run, 2, due_publishes(clocks, time), time, step.point, 0);
}
}
if (!has_room(rows)) {
return false;
}
if (rows.recording === 1) {
add_row(run, 0, 0, step.time, step.x, 0);
}
if (run.witnesses.crossed !== 0) {
add_row(run, 3, run.witnesses.crossed, step.time, step.x, 0);
}
if (mask !== 0 || rows.stepwise === 1) {
add_row(run, 2, mask, step.time, step.x, 0);
}
return true;
}
function state_inside$Rodas5P(run, time, out, out$start) {
let step, n, manifold;
step = run.step;
n = run.system.n;
manifold = run.manifold;
if (time === step.time_new && step.time === step.time_new) {
copy(n, step.x, 0, out, out$start);
return;
}
if (step.ready === 0) {
if (step.moved === 2) {
find_interpolant$Rodas5P(run, manifold.landed, 0);
} else {
find_interpolant$Rodas5P(run, step.x, 0);
}
step.ready = 1;
}
interpolate(step, n, time, out, out$start);
if (step.moved === 2) {
bend(manifold, n, (time - step.time_old) / (step.time_new - step.time_old), out, out$start);
}
}
function find_interpolant$Rodas5P(run, end, end$start) {
prepare_interpolant$Rodas5P(run.step, run.system.n, end, end$start);
}
function prepare_interpolant$Rodas5P(step, n, end, end$start) {
bends$Rodas5P(n, step.x_old, 0, end, end$start, step.k, n, step.q, 0);
}
function bends$Rodas5P(n, x_old, x_old$start, x_new, x_new$start, k, k$start, q, q$start) {
let i;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
q[q$start + i] = x_new[x_new$start + i] - x_old[x_old$start + i];
}
add_up$_25_948786856663858___2_5579724845846235__10_433815404888879___2_3679251022685204__0_524948541321073__1_1241088310450404__0_4272876194431874___0_17202221070155493_(n, k, k$start, q, q$start + 1 * n);
add_up$__9_91568850695171___0_9689944594115154__3_0438037242978453___24_495224566215796__20_176138334709044__15_98066361424651___6_789040303419874___6_710236069923372_(n, k, k$start, q, q$start + 2 * n);
add_up$_11_419903575922262__2_8879645146136994__72_92137995996029__80_12511834622643___52_072871366152654___59_78993625266729___0_15582684282751913__4_883087185713722_(n, k, k$start, q, q$start + 3 * n);
}
function add_up$_25_948786856663858___2_5579724845846235__10_433815404888879___2_3679251022685204__0_524948541321073__1_1241088310450404__0_4272876194431874___0_17202221070155493_(n, k, k$start, out, out$start) {
let i, total;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
total = 0;
total = total + 25.948786856663858 * k[k$start + (0 * n + i)];
total = total + -2.5579724845846235 * k[k$start + (1 * n + i)];
total = total + 10.433815404888879 * k[k$start + (2 * n + i)];
total = total + -2.3679251022685204 * k[k$start + (3 * n + i)];
total = total + 0.524948541321073 * k[k$start + (4 * n + i)];
total = total + 1.1241088310450404 * k[k$start + (5 * n + i)];
total = total + 0.4272876194431874 * k[k$start + (6 * n + i)];
total = total + -0.17202221070155493 * k[k$start + (7 * n + i)];
out[out$start + i] = total;
}
}
function add_up$__9_91568850695171___0_9689944594115154__3_0438037242978453___24_495224566215796__20_176138334709044__15_98066361424651___6_789040303419874___6_710236069923372_(n, k, k$start, out, out$start) {
let i, total;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
total = 0;
total = total + -9.91568850695171 * k[k$start + (0 * n + i)];
total = total + -0.9689944594115154 * k[k$start + (1 * n + i)];
total = total + 3.0438037242978453 * k[k$start + (2 * n + i)];
total = total + -24.495224566215796 * k[k$start + (3 * n + i)];
total = total + 20.176138334709044 * k[k$start + (4 * n + i)];
total = total + 15.98066361424651 * k[k$start + (5 * n + i)];
total = total + -6.789040303419874 * k[k$start + (6 * n + i)];
total = total + -6.710236069923372 * k[k$start + (7 * n + i)];
out[out$start + i] = total;
}
}
function add_up$_11_419903575922262__2_8879645146136994__72_92137995996029__80_12511834622643___52_072871366152654___59_78993625266729___0_15582684282751913__4_883087185713722_(n, k, k$start, out, out$start) {
let i, total;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
total = 0;
total = total + 11.419903575922262 * k[k$start + (0 * n + i)];
total = total + 2.8879645146136994 * k[k$start + (1 * n + i)];
total = total + 72.92137995996029 * k[k$start + (2 * n + i)];
total = total + 80.12511834622643 * k[k$start + (3 * n + i)];
total = total + -52.072871366152654 * k[k$start + (4 * n + i)];
total = total + -59.78993625266729 * k[k$start + (5 * n + i)];
total = total + -0.15582684282751913 * k[k$start + (6 * n + i)];
total = total + 4.883087185713722 * k[k$start + (7 * n + i)];
out[out$start + i] = total;
}
}
function interpolate(step, n, time, out, out$start) {
let s;
s = (time - step.time_old) / (step.time_new - step.time_old);
point_inside(n, s, step.x_old, 0, step.q, 0, out, out$start);
}
function point_inside(n, s, x, x$start, q, q$start, out, out$start) {
let i, inner;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
inner = q[q$start + (n + i)] + s * (q[q$start + (2 * n + i)] + s * q[q$start + (3 * n + i)]);
out[out$start + i] = x[x$start + i] + s * (q[q$start + i] + (1 - s) * inner);
}
}
function go_on$Rodas5P$True(run) {
let found, pace;
if (run.manifold.answer === 0) {
if (!take_step$Rodas5P(run)) {
return 4;
}
run.motion.steps = run.motion.steps + 1;
}
if (true && run.manifold.count > 0) {
found = place_end(run);
if (found === 2) {
return 6;
}
if (found === 3) {
step_back(run);
return 4;
}
}
pace = 0;
if (run.counts.steps === run.pace.judged_at) {
pace = judge(run.pace, run.counts.steps, run.step.time);
}
if (pace === 2) {
step_back(run);
return 5;
}
if (pace === 1) {
run.budget = 0;
}
return -2;
}
function take_step$Rodas5P(run) {
let step, n, longest, h, rejected, end, error;
step = run.step;
n = run.system.n;
longest = run.tolerances.max_step;
if (step.moved === 1) {
copy(n, step.k, 9 * n, step.k, 0);
} else {
if (step.moved === 2) {
copy(n, run.manifold.slope, 0, step.k, 0);
}
}
step.moved = 0;
h = step.h_next;
step.h_wanted = h;
if (h > longest) {
h = longest;
} else {
if (is_too_short(h, step.time)) {
h = shortest_step(step.time);
}
}
rejected = false;
while (true) {
if (is_too_short(h, step.time)) {
return false;
}
end = smaller(step.time + h, run.motion.stop);
step.h = end - step.time;
h = step.h;
error = run.system.attempt(run);
if (error < 1) {
step.h_next = h * growth$Rodas5P(step, error, rejected);
run.counts.steps = run.counts.steps + 1;
run.linear.known = 0;
accept(step, end);
return true;
}
h = h * shrinking$Rodas5P(error);
rejected = true;
run.counts.rejected = run.counts.rejected + 1;
}
}
function growth$Rodas5P(step, error, rejected) {
let factor, small, wanted;
factor = 6;
small = 7.517812499999998e-05;
if (error > small) {
wanted = 0.9 * Math.pow(error, -0.2);
factor = larger(0.2, smaller(factor, wanted));
}
step.error_old = larger(error, 0.0001);
if (rejected) {
factor = smaller(factor, 1);
}
return factor;
}
function shrinking$Rodas5P(error) {
if (!(error < Infinity)) {
return 0.2;
}
return larger(0.2, 0.9 * Math.pow(error, -0.2));
}
function find_crossing$Rodas5P(run) {
let witnesses, w, end, shortest, low, width, left, asked, leaving, unseen, k, high, count, found, last, last$start;
witnesses = run.witnesses;
w = witnesses.count;
end = run.step.time_new;
shortest = shortest_stretch(run.step.time_old, end);
low = run.step.time_old;
width = smaller(end - low, witnesses.longest);
left = 4000;
asked = 100000;
leaving = leaving_mask(witnesses);
unseen = leaving;
for (let k$at = 0, k$end = w; k$at < k$end; k$at++) {
k = k$at;
witnesses.peaks[k] = 0;
}
while (true) {
high = end_of_stretch(low, width, end);
if (width < witnesses.longest) {
left = left - 1;
}
asked = asked - 1;
if (asked <= 0) {
return 2;
}
count = profile$Rodas5P(run, low, high, width > shortest);
if (!all_finite((count > 0 ? count : -count) * w, witnesses.samples, 0)) {
return 2;
}
if (left <= 0 || width <= shortest && may_miss(witnesses, count)) {
return 2;
}
if (count < 0) {
note_peaks(witnesses, -count);
width = larger(0.5 * (high - low), shortest);
continue;
}
unseen = still_unseen(run, unseen, count);
if (unseen < 0) {
return 2;
}
found = first_crossing$Rodas5P(run, count, leaving);
if (found !== 0) {
return found;
}
last$start = witnesses.order[count - 1] * w;
last = witnesses.samples;
for (let k$at = 0, k$end = w; k$at < k$end; k$at++) {
k = k$at;
witnesses.first[k] = last[last$start + k];
}
if (high === end) {
forget_old_events(witnesses);
return 0;
}
low = high;
width = smaller(2 * width, witnesses.longest);
}
}
function profile$Rodas5P(run, start, end, shorten) {
let witnesses, w, width, middle, leaving, k, close, delta, count, some;
witnesses = run.witnesses;
w = witnesses.count;
width = end - start;
middle = start + 0.4721359549995794 * width;
witnesses.instants[0] = start;
witnesses.instants[1] = middle;
witnesses.instants[2] = end;
leaving = false;
for (let k$at = 0, k$end = w; k$at < k$end; k$at++) {
k = k$at;
witnesses.samples[k] = witnesses.first[k];
if (witnesses.first[k] === 0) {
leaving = true;
}
}
witness_values$Rodas5P(run, middle, witnesses.samples, w);
witness_values$Rodas5P(run, end, witnesses.samples, 2 * w);
close = smaller(100000 * spacing(larger(Math.abs(start), Math.abs(end))), 0.25 * width);
delta = larger(1e-07 * width, close);
if (leaving) {
for (let k$at = 0, k$end = w; k$at < k$end; k$at++) {
k = k$at;
witnesses.slopes[3 * w + k] = witnesses.first[k];
if (witnesses.first[k] === 0 && witnesses.on_surface[k] === 1) {
witnesses.slopes[3 * w + k] = witnesses.surface[k];
}
}
slope$Rodas5P(run, start, close, witnesses.slopes, 3 * w, witnesses.slopes, 0);
} else {
slope$Rodas5P(run, start, delta, witnesses.samples, 0, witnesses.slopes, 0);
}
slope$Rodas5P(run, end, -delta, witnesses.samples, 2 * w, witnesses.slopes, 2 * w);
count = 3;
if (all_far(witnesses, width)) {
sort_samples(witnesses, count);
return count;
}
slope$Rodas5P(run, middle, delta, witnesses.samples, w, witnesses.slopes, w);
some = false;
for (let k$at = 0, k$end = w; k$at < k$end; k$at++) {
k = k$at;
witnesses.fast[k] = varies_fast(witnesses.samples[k], witnesses.samples[w + k], witnesses.samples[2 * w + k], width * witnesses.slopes[k], width * witnesses.slopes[w + k], width * witnesses.slopes[2 * w + k]);
if (witnesses.fast[k] > 0) {
some = true;
}
}
if (some && shorten) {
return -count;
}
if (looks_closer(witnesses)) {
count = look_closer$Rodas5P(run);
if (count < 0 && shorten) {
return count;
}
count = 5;
}
return add_extrema$Rodas5P(run, count);
}
function witness_values$Rodas5P(run, time, out, out$start) {
let point;
point = run.step.point;
state_inside$Rodas5P(run, time, point, 0);
run.witnesses.values(time, point, run.system.env, view$(out, out$start));
}
function slope$Rodas5P(run, time, toward, here, here$start, out, out$start) {
let k;
witness_values$Rodas5P(run, time + toward, out, out$start);
for (let k$at = 0, k$end = run.witnesses.count; k$at < k$end; k$at++) {
k = k$at;
out[out$start + k] = (out[out$start + k] - here[here$start + k]) / toward;
}
}
function look_closer$Rodas5P(run) {
let witnesses, w, left, right, inside, inside$start, count, k;
witnesses = run.witnesses;
w = witnesses.count;
left = witnesses.instants[0];
right = witnesses.instants[1];
witnesses.instants[3] = left + 0.4721359549995794 * (right - left);
inside$start = 3 * w;
inside = witnesses.samples;
witness_values$Rodas5P(run, witnesses.instants[3], inside, inside$start);
left = witnesses.instants[1];
right = witnesses.instants[2];
witnesses.instants[4] = left + 0.4721359549995794 * (right - left);
inside$start = 4 * w;
inside = witnesses.samples;
witness_values$Rodas5P(run, witnesses.instants[4], inside, inside$start);
count = 5;
for (let k$at = 0, k$end = w; k$at < k$end; k$at++) {
k = k$at;
if (piece_varies_fast(witnesses, k, 0) || piece_varies_fast(witnesses, k, 1)) {
count = -5;
}
}
return count;
}
function add_extrema$Rodas5P(run, count) {
let witnesses, w, left, right, k, low, high, d0, d1, a, b, root, q, s;
witnesses = run.witnesses;
w = witnesses.count;
left = witnesses.instants[0];
right = witnesses.instants[1];
for (let k$at = 0, k$end = w; k$at < k$end; k$at++) {
k = k$at;
low = witnesses.samples[0 * w + k];
high = witnesses.samples[1 * w + k];
d0 = witnesses.slopes[0 * w + k] * (right - left);
d1 = witnesses.slopes[1 * w + k] * (right - left);
a = d0 + d1 - 2 * (high - low);
b = 3 * (high - low) - 2 * d0 - d1;
root = Math.sqrt(b * b - 3 * a * d0);
q = b >= 0 ? -(b + root) : -(b - root);
s = q / (3 * a);
if (is_suspect(s, low, high, d0, b, a)) {
count = add_sample$Rodas5P(run, left + s * (right - left), count);
}
s = d0 / q;
if (is_suspect(s, low, high, d0, b, a)) {
count = add_sample$Rodas5P(run, left + s * (right - left), count);
}
}
left = witnesses.instants[1];
right = witnesses.instants[2];
for (let k$at = 0, k$end = w; k$at < k$end; k$at++) {
k = k$at;
low = witnesses.samples[1 * w + k];
high = witnesses.samples[2 * w + k];
d0 = witnesses.slopes[1 * w + k] * (right - left);
d1 = witnesses.slopes[2 * w + k] * (right - left);
a = d0 + d1 - 2 * (high - low);
b = 3 * (high - low) - 2 * d0 - d1;
root = Math.sqrt(b * b - 3 * a * d0);
q = b >= 0 ? -(b + root) : -(b - root);
s = q / (3 * a);
if (is_suspect(s, low, high, d0, b, a)) {
count = add_sample$Rodas5P(run, left + s * (right - left), count);
}
s = d0 / q;
if (is_suspect(s, low, high, d0, b, a)) {
count = add_sample$Rodas5P(run, left + s * (right - left), count);
}
}
sort_samples(witnesses, count);
return count;
}
function add_sample$Rodas5P(run, time, count) {
let witnesses, e;
witnesses = run.witnesses;
for (let e$at = 0, e$end = count; e$at < e$end; e$at++) {
e = e$at;
if (witnesses.instants[e] === time) {
return count;
}
}
witnesses.instants[count] = time;
witness_values$Rodas5P(run, time, witnesses.samples, count * witnesses.count);
return count + 1;
}
function first_crossing$Rodas5P(run, count, leaving) {
let witnesses, w, best, k, at, time, position, before, before$start, mask, bit, recent, moves;
witnesses = run.witnesses;
w = witnesses.count;
best = Infinity;
for (let k$at = 0, k$end = w; k$at < k$end; k$at++) {
k = k$at;
at = first_trigger(witnesses, k, count);
if (at > 0 && witnesses.instants[witnesses.order[at - 1]] < best) {
time = narrow$Rodas5P(run, k, at);
if (!(time < Infinity)) {
return 2;
}
best = smaller(best, time);
}
}
if (best === Infinity) {
return 0;
}
position = 0;
while (position < count - 1 && witnesses.instants[witnesses.order[position + 1]] < best) {
position = position + 1;
}
before$start = witnesses.order[position] * w;
before = witnesses.samples;
witness_values$Rodas5P(run, best, witnesses.slopes, 0);
mask = 0;
bit = 1;
for (let k$at = 0, k$end = w; k$at < k$end; k$at++) {
k = k$at;
if (triggers(witnesses.directions[k], before[before$start + k], witnesses.slopes[k])) {
mask = mask + bit;
recent = Math.floor(leaving / bit) % 2 === 1 || witnesses.on_surface[k] > 0;
if (recent && witnesses.turning[k] === 1) {
moves = tendency(run, k, best, run.step.point, 0, witnesses.slopes[k]);
if (moves * before[before$start + k] > 0) {
return 2;
}
}
}
bit = bit * 2;
}
bit = 1;
forget_old_events(witnesses);
for (let k$at = 0, k$end = w; k$at < k$end; k$at++) {
k = k$at;
witnesses.first[k] = witnesses.slopes[k];
if (Math.floor(mask / bit) % 2 === 1) {
witnesses.on_surface[k] = 1;
witnesses.surface[k] = witnesses.slopes[k];
witnesses.first[k] = 0;
}
bit = bit * 2;
}
witnesses.crossed = mask;
witnesses.time_crossed = best;
witnesses.jumped = 0;
return 1;
}
function narrow$Rodas5P(run, k, at) {
let witnesses, w, low, high, f_low, f_high, resolution, root, margin, time, value, beyond;
witnesses = run.witnesses;
w = witnesses.count;
low = witnesses.instants[witnesses.order[at - 1]];
high = witnesses.instants[witnesses.order[at]];
f_low = witnesses.samples[witnesses.order[at - 1] * w + k];
f_high = witnesses.samples[witnesses.order[at] * w + k];
resolution = 4 * spacing(larger(Math.abs(low), Math.abs(high)));
start_search(witnesses.search, 0, low, high, f_low, f_high);
while (next_look(witnesses.search, 0, resolution)) {
witnesses.search[1] = value_at$Rodas5P(run, k, witnesses.search[0]);
}
root = witnesses.search[0];
margin = 0;
time = smaller(root + margin, high);
while (time < high) {
value = value_at$Rodas5P(run, k, time);
if (value * 0 !== 0) {
return Infinity;
}
if (triggers(witnesses.directions[k], f_low, value)) {
beyond = smaller(time + resolution, high);
if (value !== 0 || witnesses.turning[k] === 0) {
return time;
}
if (value_at$Rodas5P(run, k, beyond) * f_low < 0) {
return beyond;
}
return time;
}
margin = larger(resolution, 2 * margin);
time = smaller(root + margin, high);
}
return high;
}
function value_at$Rodas5P(run, k, time) {
let witnesses, value;
witnesses = run.witnesses;
witness_values$Rodas5P(run, time, witnesses.slopes, 0);
value = witnesses.slopes[k];
return value;
}
function cut$Rodas5P(run) {
let step;
step = run.step;
state_inside$Rodas5P(run, run.witnesses.time_crossed, step.point, 0);
copy(run.system.n, step.point, 0, step.x, 0);
step.time = run.witnesses.time_crossed;
}
function is_stiff$Rodas5P(run) {
return false;
}
function Rodas5P_resample(run, steps, spans, spans$start, states, states$start, discrete, discrete$start, counts, counts$start, times, times$start, out, out$start) {
let step, n, m, done, s;
step = run.step;
n = run.system.n;
m = run.system.m;
done = 0;
for (let s$at = 0, s$end = steps; s$at < s$end; s$at++) {
s = s$at;
step.time = spans[spans$start + 3 * s];
step.time_new = spans[spans$start + (3 * s + 1)];
step.h = step.time_new - step.time;
step.clip = spans[spans$start + (3 * s + 2)];
copy(n, states, states$start + s * n, step.x, 0);
copy(m, discrete, discrete$start + s * m, run.system.env, 0);
resample$Rodas5P(run, counts[counts$start + s], times, times$start + done, out, out$start + done * n);
done = done + counts[counts$start + s];
}
}
function resample$Rodas5P(run, count, times, times$start, out, out$start) {
let step, end, c;
step = run.step;
end = step.time_new;
run.system.rhs(smaller(step.time, step.clip), step.x, run.system.env, step.k);
run.linear.known = 0;
run.system.attempt(run);
accept(step, end);
if (run.manifold.count > 0) {
place_end(run);
}
for (let c$at = 0, c$end = count; c$at < c$end; c$at++) {
c = c$at;
state_inside$Rodas5P(run, times[times$start + c], out, out$start + c * run.system.n);
}
}
function Rodas5P_attempt(run) {
return attempt_in_tiles$Rodas5P$0(run);
}
function attempt_in_tiles$Rodas5P$0(run) {
return attempt$Rodas5P$0(run, run.system.n, run.system.rhs, run.linear.factors);
}
function attempt$Rodas5P$0(run, n, f, factors) {
let step, linear, t, h, env, x, x_new, y, k, b, b$start, error, last, last$start;
step = run.step;
linear = run.linear;
t = step.time;
h = step.h;
env = run.system.env;
if (linear.known === 0) {
linear.jacobian(smaller(t, step.clip), step.x, env, linear.entries);
run.counts.jacobians = run.counts.jacobians + 1;
linear.known = 1;
if (!all_finite(linear.nonzeros, linear.entries, 0)) {
return NaN;
}
}
x = step.x;
x_new = step.x_new;
y = step.point;
k = step.k;
run.counts.evaluations = run.counts.evaluations + find_time_slope(n, f, run.system.timed, t, h, step.clip, x, 0, k, 0, env, 0, step.time_slope, 0, step.work, 0);
run.counts.factorizations = run.counts.factorizations + 1;
if (!factorize$0(linear, factors, n, 1 / (0.21193756319429014 * h))) {
return NaN;
}
b$start = 1 * n;
b = k;
copy(n, k, 0, b, b$start);
copy(n, x, 0, y, 0);
add(n, h * 0.21193756319429014, step.time_slope, 0, b, b$start);
solve$0(linear, factors, n, b, b$start);
if (!all_finite(n, b, b$start)) {
return NaN;
}
b$start = 2 * n;
b = k;
point$______3_0_____2_849394379747939__0_45842242204463923_____6_954028509809101__2_489845061869568___10_358996098473584____2_8029986275628964__0_5072464736228206___0_3988312541770524___0_04721187230404641_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946__1_0_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946__1_0__1_0__$1(n, x, 0, k, n, y, 0);
f(smaller(t + 0.6358126895828704 * h, step.clip), y, env, view$(b, b$start));
add_stages$Rodas5P$1(n, h, k, n, b, b$start);
add(n, h * -0.42387512638858027, step.time_slope, 0, b, b$start);
solve$0(linear, factors, n, b, b$start);
if (!all_finite(n, b, b$start)) {
return NaN;
}
b$start = 3 * n;
b = k;
point$______3_0_____2_849394379747939__0_45842242204463923_____6_954028509809101__2_489845061869568___10_358996098473584____2_8029986275628964__0_5072464736228206___0_3988312541770524___0_04721187230404641_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946__1_0_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946__1_0__1_0__$2(n, x, 0, k, n, y, 0);
f(smaller(t + 0.4095798393397535 * h, step.clip), y, env, view$(b, b$start));
add_stages$Rodas5P$2(n, h, k, n, b, b$start);
add(n, h * -0.3384627126235924, step.time_slope, 0, b, b$start);
solve$0(linear, factors, n, b, b$start);
if (!all_finite(n, b, b$start)) {
return NaN;
}
b$start = 4 * n;
b = k;
point$______3_0_____2_849394379747939__0_45842242204463923_____6_954028509809101__2_489845061869568___10_358996098473584____2_8029986275628964__0_5072464736228206___0_3988312541770524___0_04721187230404641_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946__1_0_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946__1_0__1_0__$3(n, x, 0, k, n, y, 0);
f(smaller(t + 0.9769306725060716 * h, step.clip), y, env, view$(b, b$start));
add_stages$Rodas5P$3(n, h, k, n, b, b$start);
add(n, h * 1.8046452872882734, step.time_slope, 0, b, b$start);
solve$0(linear, factors, n, b, b$start);
if (!all_finite(n, b, b$start)) {
return NaN;
}
b$start = 5 * n;
b = k;
point$______3_0_____2_849394379747939__0_45842242204463923_____6_954028509809101__2_489845061869568___10_358996098473584____2_8029986275628964__0_5072464736228206___0_3988312541770524___0_04721187230404641_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946__1_0_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946__1_0__1_0__$4(n, x, 0, k, n, y, 0);
f(smaller(t + 0.4288403609558664 * h, step.clip), y, env, view$(b, b$start));
add_stages$Rodas5P$4(n, h, k, n, b, b$start);
add(n, h * 2.325825639765069, step.time_slope, 0, b, b$start);
solve$0(linear, factors, n, b, b$start);
if (!all_finite(n, b, b$start)) {
return NaN;
}
b$start = 6 * n;
b = k;
point$______3_0_____2_849394379747939__0_45842242204463923_____6_954028509809101__2_489845061869568___10_358996098473584____2_8029986275628964__0_5072464736228206___0_3988312541770524___0_04721187230404641_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946__1_0_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946__1_0__1_0__$5(n, x, 0, k, n, y, 0);
f(smaller(t + 1 * h, step.clip), y, env, view$(b, b$start));
add_stages$Rodas5P$5(n, h, k, n, b, b$start);
solve$0(linear, factors, n, b, b$start);
if (!all_finite(n, b, b$start)) {
return NaN;
}
b$start = 7 * n;
b = k;
point$______3_0_____2_849394379747939__0_45842242204463923_____6_954028509809101__2_489845061869568___10_358996098473584____2_8029986275628964__0_5072464736228206___0_3988312541770524___0_04721187230404641_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946__1_0_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946__1_0__1_0__$6(n, x, 0, k, n, y, 0);
f(smaller(t + 1 * h, step.clip), y, env, view$(b, b$start));
add_stages$Rodas5P$6(n, h, k, n, b, b$start);
solve$0(linear, factors, n, b, b$start);
if (!all_finite(n, b, b$start)) {
return NaN;
}
b$start = 8 * n;
b = k;
point$______3_0_____2_849394379747939__0_45842242204463923_____6_954028509809101__2_489845061869568___10_358996098473584____2_8029986275628964__0_5072464736228206___0_3988312541770524___0_04721187230404641_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946__1_0_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946__1_0__1_0__$7(n, x, 0, k, n, y, 0);
f(smaller(t + 1 * h, step.clip), y, env, view$(b, b$start));
add_stages$Rodas5P$7(n, h, k, n, b, b$start);
solve$0(linear, factors, n, b, b$start);
if (!all_finite(n, b, b$start)) {
return NaN;
}
copy(n, y, 0, x_new, 0);
add(n, 1, k, 8 * n, x_new, 0);
run.counts.evaluations = run.counts.evaluations + 7;
error = error_norm(n, x, 0, x_new, 0, k, 8 * n, run.tolerances.rtol, 0, run.tolerances.atol, 0);
if (error < 1) {
last$start = 9 * n;
last = k;
f(smaller(t + h, step.clip), x_new, env, view$(last, last$start));
run.counts.evaluations = run.counts.evaluations + 1;
if (!all_finite(n, last, last$start)) {
return NaN;
}
}
return error;
}
function find_time_slope(n, f, timed, t, h, clip, x, x$start, k, k$start, env, env$start, near, near$start, far, far$start) {
let i, distance, changes;
if (timed === 0) {
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
near[near$start + i] = 0;
}
return 0;
}
distance = t + 0.01 * h - t;
f(smaller(t + distance, clip), view$(x, x$start), view$(env, env$start), view$(near, near$start));
changes = subtract(n, k, k$start, near, near$start);
if (!changes) {
return 1;
}
f(smaller(t + 2 * distance, clip), view$(x, x$start), view$(env, env$start), view$(far, far$start));
subtract(n, k, k$start, far, far$start);
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
near[near$start + i] = changes ? (4 * near[near$start + i] - far[far$start + i]) / (2 * distance) : near[near$start + i];
}
return 2;
}
function subtract(n, a, a$start, b, b$start) {
let left, i;
left = false;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
b[b$start + i] = b[b$start + i] - a[a$start + i];
left = left || b[b$start + i] !== 0;
}
return left;
}
function factorize$0(linear, factors, n, d) {
let growth;
linear.factored_sparse = 0;
if (linear.sparse === 1) {
growth = 0;
growth = sparse_growth(factors, n, d, linear.entries, 0, linear.values, 0, linear.row, 0);
if (growth < 1000000000 || linear.roomy === 0 && growth < 1000000000000000) {
linear.factored_sparse = 1;
return true;
}
}
if (linear.roomy === 0) {
return false;
}
return factorize_dense(linear.n, d, linear.nonzeros, linear.entries, 0, linear.rows, 0, linear.columns, 0, linear.matrix, 0, linear.pivots, 0);
}
function sparse_growth(factors, n, d, entries, entries$start, values, values$start, row, row$start) {
let e, i, growth, part, g, inverse;
for (let e$at = 0, e$end = factors.starts[n]; e$at < e$end; e$at++) {
e = e$at;
values[values$start + e] = 0;
}
for (let e$at = 0, e$end = factors.nonzeros; e$at < e$end; e$at++) {
e = e$at;
values[values$start + factors.slots[e]] = values[values$start + factors.slots[e]] - entries[entries$start + e];
}
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
values[values$start + factors.diagonal[i]] = values[values$start + factors.diagonal[i]] + d;
}
growth = 0;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
for (let e$at = factors.starts[i], e$end = factors.starts[i + 1]; e$at < e$end; e$at++) {
e = e$at;
row[row$start + factors.column[e]] = values[values$start + e];
}
for (let e$at = factors.starts[i], e$end = factors.diagonal[i]; e$at < e$end; e$at++) {
e = e$at;
part = row[row$start + factors.column[e]];
values[values$start + e] = part * values[values$start + factors.diagonal[factors.column[e]]];
for (let g$at = factors.diagonal[factors.column[e]] + 1, g$end = factors.starts[factors.column[e] + 1]; g$at < g$end; g$at++) {
g = g$at;
row[row$start + factors.column[g]] = row[row$start + factors.column[g]] - part * values[values$start + g];
}
}
inverse = 1 / row[row$start + i];
growth = growth + 0 * inverse;
values[values$start + factors.diagonal[i]] = inverse;
for (let e$at = factors.diagonal[i] + 1, e$end = factors.starts[i + 1]; e$at < e$end; e$at++) {
e = e$at;
values[values$start + e] = row[row$start + factors.column[e]] * inverse;
}
}
for (let e$at = 0, e$end = factors.pairs; e$at < e$end; e$at++) {
e = e$at;
growth = growth + Math.abs(values[values$start + factors.lower[e]] * values[values$start + factors.upper[e]]);
}
return growth;
}
function factorize_dense(n, d, nonzeros, entries, entries$start, rows, rows$start, columns, columns$start, matrix, matrix$start, pivots, pivots$start) {
let e, i, j, best, g, held, pivot;
for (let e$at = 0, e$end = n * n; e$at < e$end; e$at++) {
e = e$at;
matrix[matrix$start + e] = 0;
}
for (let e$at = 0, e$end = nonzeros; e$at < e$end; e$at++) {
e = e$at;
matrix[matrix$start + (rows[rows$start + e] * n + columns[columns$start + e])] = matrix[matrix$start + (rows[rows$start + e] * n + columns[columns$start + e])] - entries[entries$start + e];
}
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
matrix[matrix$start + (i * n + i)] = matrix[matrix$start + (i * n + i)] + d;
}
for (let j$at = 0, j$end = n; j$at < j$end; j$at++) {
j = j$at;
best = j;
for (let i$at = j + 1, i$end = n; i$at < i$end; i$at++) {
i = i$at;
if (Math.abs(matrix[matrix$start + (i * n + j)]) > Math.abs(matrix[matrix$start + (best * n + j)])) {
best = i;
}
}
pivots[pivots$start + j] = best;
if (!(Math.abs(matrix[matrix$start + (best * n + j)]) > 0)) {
return false;
}
if (best !== j) {
for (let g$at = 0, g$end = n; g$at < g$end; g$at++) {
g = g$at;
held = matrix[matrix$start + (j * n + g)];
matrix[matrix$start + (j * n + g)] = matrix[matrix$start + (best * n + g)];
matrix[matrix$start + (best * n + g)] = held;
}
}
pivot = matrix[matrix$start + (j * n + j)];
for (let i$at = j + 1, i$end = n; i$at < i$end; i$at++) {
i = i$at;
if (matrix[matrix$start + (i * n + j)] !== 0) {
eliminate(n - j - 1, matrix, matrix$start + (i * n + j), matrix, matrix$start + (j * n + j + 1), pivot);
}
}
}
return true;
}
function eliminate(count, row, row$start, pivot_row, pivot_row$start, pivot) {
let multiplier, g;
multiplier = row[row$start] / pivot;
row[row$start] = multiplier;
for (let g$at = 0, g$end = count; g$at < g$end; g$at++) {
g = g$at;
row[row$start + (g + 1)] = row[row$start + (g + 1)] - multiplier * pivot_row[pivot_row$start + g];
}
}
function add(n, factor, a, a$start, b, b$start) {
let i;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
b[b$start + i] = b[b$start + i] + factor * a[a$start + i];
}
}
function solve$0(linear, factors, n, b, b$start) {
if (linear.factored_sparse === 1) {
solve_sparse(factors, n, linear.values, 0, linear.row, 0, b, b$start);
} else {
solve_dense(linear.n, linear.matrix, 0, linear.pivots, 0, b, b$start);
}
}
function solve_sparse(factors, n, values, values$start, y, y$start, b, b$start) {
let i, total, e;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
y[y$start + factors.ranks[i]] = b[b$start + i];
}
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
total = y[y$start + i];
for (let e$at = factors.starts[i], e$end = factors.diagonal[i]; e$at < e$end; e$at++) {
e = e$at;
total = total - values[values$start + e] * y[y$start + factors.column[e]];
}
y[y$start + i] = total;
}
for (let i$at = n - 1, i$end = -1; i$at > i$end; i$at--) {
i = i$at;
total = y[y$start + i] * values[values$start + factors.diagonal[i]];
for (let e$at = factors.starts[i + 1] - 1, e$end = factors.diagonal[i]; e$at > e$end; e$at--) {
e = e$at;
total = total - values[values$start + e] * y[y$start + factors.column[e]];
}
y[y$start + i] = total;
}
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
b[b$start + i] = y[y$start + factors.ranks[i]];
}
}
function solve_dense(n, matrix, matrix$start, pivots, pivots$start, b, b$start) {
let j, held, i, total;
for (let j$at = 0, j$end = n; j$at < j$end; j$at++) {
j = j$at;
if (pivots[pivots$start + j] !== j) {
held = b[b$start + j];
b[b$start + j] = b[b$start + pivots[pivots$start + j]];
b[b$start + pivots[pivots$start + j]] = held;
}
}
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
total = b[b$start + i];
for (let j$at = 0, j$end = i; j$at < j$end; j$at++) {
j = j$at;
total = total - matrix[matrix$start + (i * n + j)] * b[b$start + j];
}
b[b$start + i] = total;
}
for (let i$at = n - 1, i$end = -1; i$at > i$end; i$at--) {
i = i$at;
total = b[b$start + i];
for (let j$at = i + 1, j$end = n; j$at < j$end; j$at++) {
j = j$at;
total = total - matrix[matrix$start + (i * n + j)] * b[b$start + j];
}
b[b$start + i] = total / matrix[matrix$start + (i * n + i)];
}
}
function point$______3_0_____2_849394379747939__0_45842242204463923_____6_954028509809101__2_489845061869568___10_358996098473584____2_8029986275628964__0_5072464736228206___0_3988312541770524___0_04721187230404641_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946__1_0_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946__1_0__1_0__$1(n, x, x$start, k, k$start, y, y$start) {
let i, total;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
total = x[x$start + i];
total = total + 3 * k[k$start + (0 * n + i)];
y[y$start + i] = total;
}
}
function add_stages$Rodas5P$1(n, h, k, k$start, b, b$start) {
let i, total;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
total = 0;
total = total + -14.155112264123755 * k[k$start + (0 * n + i)];
b[b$start + i] = b[b$start + i] + total / h;
}
}
function point$______3_0_____2_849394379747939__0_45842242204463923_____6_954028509809101__2_489845061869568___10_358996098473584____2_8029986275628964__0_5072464736228206___0_3988312541770524___0_04721187230404641_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946__1_0_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946__1_0__1_0__$2(n, x, x$start, k, k$start, y, y$start) {
let i, total;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
total = x[x$start + i];
total = total + 2.849394379747939 * k[k$start + (0 * n + i)];
total = total + 0.45842242204463923 * k[k$start + (1 * n + i)];
y[y$start + i] = total;
}
}
function add_stages$Rodas5P$2(n, h, k, k$start, b, b$start) {
let i, total;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
total = 0;
total = total + -17.97296035885952 * k[k$start + (0 * n + i)];
total = total + -2.859693295451294 * k[k$start + (1 * n + i)];
b[b$start + i] = b[b$start + i] + total / h;
}
}
function point$______3_0_____2_849394379747939__0_45842242204463923_____6_954028509809101__2_489845061869568___10_358996098473584____2_8029986275628964__0_5072464736228206___0_3988312541770524___0_04721187230404641_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946__1_0_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946__1_0__1_0__$3(n, x, x$start, k, k$start, y, y$start) {
let i, total;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
total = x[x$start + i];
total = total + -6.954028509809101 * k[k$start + (0 * n + i)];
total = total + 2.489845061869568 * k[k$start + (1 * n + i)];
total = total + -10.358996098473584 * k[k$start + (2 * n + i)];
y[y$start + i] = total;
}
}
function add_stages$Rodas5P$3(n, h, k, k$start, b, b$start) {
let i, total;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
total = 0;
total = total + 147.12150275711716 * k[k$start + (0 * n + i)];
total = total + -1.41221402718213 * k[k$start + (1 * n + i)];
total = total + 71.68940251302358 * k[k$start + (2 * n + i)];
b[b$start + i] = b[b$start + i] + total / h;
}
}
function point$______3_0_____2_849394379747939__0_45842242204463923_____6_954028509809101__2_489845061869568___10_358996098473584____2_8029986275628964__0_5072464736228206___0_3988312541770524___0_04721187230404641_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946__1_0_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946__1_0__1_0__$4(n, x, x$start, k, k$start, y, y$start) {
let i, total;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
total = x[x$start + i];
total = total + 2.8029986275628964 * k[k$start + (0 * n + i)];
total = total + 0.5072464736228206 * k[k$start + (1 * n + i)];
total = total + -0.3988312541770524 * k[k$start + (2 * n + i)];
total = total + -0.04721187230404641 * k[k$start + (3 * n + i)];
y[y$start + i] = total;
}
}
function add_stages$Rodas5P$4(n, h, k, k$start, b, b$start) {
let i, total;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
total = 0;
total = total + 165.43517024871676 * k[k$start + (0 * n + i)];
total = total + -0.4592823456491126 * k[k$start + (1 * n + i)];
total = total + 42.90938336958603 * k[k$start + (2 * n + i)];
total = total + -5.961986721573306 * k[k$start + (3 * n + i)];
b[b$start + i] = b[b$start + i] + total / h;
}
}
function point$______3_0_____2_849394379747939__0_45842242204463923_____6_954028509809101__2_489845061869568___10_358996098473584____2_8029986275628964__0_5072464736228206___0_3988312541770524___0_04721187230404641_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946__1_0_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946__1_0__1_0__$5(n, x, x$start, k, k$start, y, y$start) {
let i, total;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
total = x[x$start + i];
total = total + -7.502846399306121 * k[k$start + (0 * n + i)];
total = total + 2.561846144803919 * k[k$start + (1 * n + i)];
total = total + -11.627539656261098 * k[k$start + (2 * n + i)];
total = total + -0.18268767659942256 * k[k$start + (3 * n + i)];
total = total + 0.030198172008377946 * k[k$start + (4 * n + i)];
y[y$start + i] = total;
}
}
function add_stages$Rodas5P$5(n, h, k, k$start, b, b$start) {
let i, total;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
total = 0;
total = total + 24.854864614690072 * k[k$start + (0 * n + i)];
total = total + -3.0009227002832186 * k[k$start + (1 * n + i)];
total = total + 47.4931110020768 * k[k$start + (2 * n + i)];
total = total + 5.5814197821558125 * k[k$start + (3 * n + i)];
total = total + -0.6610691825249471 * k[k$start + (4 * n + i)];
b[b$start + i] = b[b$start + i] + total / h;
}
}
function point$______3_0_____2_849394379747939__0_45842242204463923_____6_954028509809101__2_489845061869568___10_358996098473584____2_8029986275628964__0_5072464736228206___0_3988312541770524___0_04721187230404641_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946__1_0_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946__1_0__1_0__$6(n, x, x$start, k, k$start, y, y$start) {
let i, total;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
total = x[x$start + i];
total = total + -7.502846399306121 * k[k$start + (0 * n + i)];
total = total + 2.561846144803919 * k[k$start + (1 * n + i)];
total = total + -11.627539656261098 * k[k$start + (2 * n + i)];
total = total + -0.18268767659942256 * k[k$start + (3 * n + i)];
total = total + 0.030198172008377946 * k[k$start + (4 * n + i)];
total = total + 1 * k[k$start + (5 * n + i)];
y[y$start + i] = total;
}
}
function add_stages$Rodas5P$6(n, h, k, k$start, b, b$start) {
let i, total;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
total = 0;
total = total + 30.91273214028599 * k[k$start + (0 * n + i)];
total = total + -3.1208243349937974 * k[k$start + (1 * n + i)];
total = total + 77.79954646070892 * k[k$start + (2 * n + i)];
total = total + 34.28646028294783 * k[k$start + (3 * n + i)];
total = total + -19.097331116725623 * k[k$start + (4 * n + i)];
total = total + -28.087943162872662 * k[k$start + (5 * n + i)];
b[b$start + i] = b[b$start + i] + total / h;
}
}
function point$______3_0_____2_849394379747939__0_45842242204463923_____6_954028509809101__2_489845061869568___10_358996098473584____2_8029986275628964__0_5072464736228206___0_3988312541770524___0_04721187230404641_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946__1_0_____7_502846399306121__2_561846144803919___11_627539656261098___0_18268767659942256__0_030198172008377946__1_0__1_0__$7(n, x, x$start, k, k$start, y, y$start) {
let i, total;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
total = x[x$start + i];
total = total + -7.502846399306121 * k[k$start + (0 * n + i)];
total = total + 2.561846144803919 * k[k$start + (1 * n + i)];
total = total + -11.627539656261098 * k[k$start + (2 * n + i)];
total = total + -0.18268767659942256 * k[k$start + (3 * n + i)];
total = total + 0.030198172008377946 * k[k$start + (4 * n + i)];
total = total + 1 * k[k$start + (5 * n + i)];
total = total + 1 * k[k$start + (6 * n + i)];
y[y$start + i] = total;
}
}
function add_stages$Rodas5P$7(n, h, k, k$start, b, b$start) {
let i, total;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
total = 0;
total = total + 37.80277123390563 * k[k$start + (0 * n + i)];
total = total + -3.2571969029072276 * k[k$start + (1 * n + i)];
total = total + 112.26918849496327 * k[k$start + (2 * n + i)];
total = total + 66.9347231244047 * k[k$start + (3 * n + i)];
total = total + -40.06618937091002 * k[k$start + (4 * n + i)];
total = total + -54.66780262877968 * k[k$start + (5 * n + i)];
total = total + -9.48861652309627 * k[k$start + (6 * n + i)];
b[b$start + i] = b[b$start + i] + total / h;
}
}
function error_norm(n, x, x$start, x_new, x_new$start, error, error$start, rtol, rtol$start, atol, atol$start) {
let total, i, part, norm;
total = 0;
for (let i$at = 0, i$end = n; i$at < i$end; i$at++) {
i = i$at;
part = error[error$start + i] / (atol[atol$start + i] + rtol[rtol$start + i] * larger(Math.abs(x[x$start + i]), Math.abs(x_new[x_new$start + i])));
total = total + part * part;
}
norm = Math.sqrt(total / n);
return norm;
}
const loops = {
RK45: { advance: RK45_advance, resample: RK45_resample, attempt: RK45_attempt, rows: 7, bends: 4, linear: false, watched: true },
Rodas5P: { advance: Rodas5P_advance, resample: Rodas5P_resample, attempt: Rodas5P_attempt, rows: 10, bends: 4, linear: true, watched: false }
};
return { loops, newRun, nextafter$, update, settle, finish_motion, note_change, find_ticks, next_stop, next_tick, spacing, piles_up, COMPLETE, PAUSED, INTERRUPTED, STIFF, DOUBTFUL, SLOW, DEPARTED, KEPT, FAR, ROOM, STEP, CHANGE, SAMPLE, CROSSING, TIME, BEGIN, END, CLIP, STATE, MOST_ROWS, UNRESTRICTED, DISCRETE, SEARCH_SIZE, WATCH_SIZE, STRIDE, MARKS, ROOMY, NONSTIFF_METHOD, STIFF_METHOD };
})();

const usual = {"method":"auto","rtol":1e-06};
const stiffFrom = Infinity;
// The memory of runs: a structure with its arrays for the loops of one method.
// It needs the loops of `loops.py`, and `equations`.

function room(count) {
  return new Float64Array(Math.max(count, 1));
}

function wholeNumbers(values) {
  return Int32Array.from(values.length ? values : [0]);
}

// The structure of a run; without states it has one, which rests.
function newMemory(name, asked, env) {
  const loop = loops[name];
  const run = newRun();
  const n = Math.max(equations.states, 1);
  const { system, tolerances, step, linear } = run;
  const rest = (t, x, values, out) => {
    out[0] = 0;
  };
  system.n = n;
  system.m = equations.discrete;
  system.env = env;
  system.rhs = equations.states ? equations.rhs : rest;
  system.timed = equations.timed ? 1 : 0;
  system.attempt = loop.attempt;
  tolerances.rtol = room(n).fill(asked.rtol);
  tolerances.atol = room(n).fill(asked.atol);
  tolerances.max_step = asked.maxStep;
  for (const part of ["x", "x_old", "x_new", "work", "point", "time_slope"]) step[part] = room(n);
  step.k = room(loop.rows * n);
  step.q = room(loop.bends * n);
  step.keeping = 1;
  if (loop.linear) prepareLinear(linear, n);
  prepareManifold(run.manifold, n, env);
  return run;
}

function prepareManifold(manifold, n, env) {
  const { count, deviations, projection } = equations.manifold;
  Object.assign(manifold, { count, deviations, projection, env, coded: 1, allowed: 1 });
  manifold.farthest = Infinity;
  manifold.values = room(count);
  for (const part of ["landed", "shift", "slope"]) manifold[part] = room(n);
}

function prepareLinear(linear, n) {
  const { rows, columns, values, factors } = equations.jacobian;
  linear.n = n;
  linear.jacobian = values;
  linear.nonzeros = rows.length;
  linear.rows = wholeNumbers(rows);
  linear.columns = wholeNumbers(columns);
  linear.entries = room(rows.length);
  linear.roomy = n <= ROOMY ? 1 : 0;
  if (linear.roomy) {
    linear.matrix = room(n * n);
    linear.pivots = new Int32Array(n);
  }
  if (factors !== null) {
    linear.sparse = 1;
    for (const [field, value] of Object.entries(factors)) {
      linear.factors[field] = typeof value === "number" ? value : wholeNumbers(value);
    }
    linear.values = room(factors.column.length);
    linear.row = room(n);
  }
}

// Put the events of the model into a run, and room for what the loop writes down; return the
// updates in their order, and those of them that are due at every step.
function describeEvents(run, asked) {
  const changing = equations.events.filter(
    ({ kind, trigger }) => kind !== "publish" && trigger !== "initialization",
  );
  const stepping = [...changing.keys()].filter((e) => changing[e].trigger === "step");
  describeClocks(run.clocks, changing);
  describeUpdates(run, changing);
  describeWitnesses(run.witnesses, changing, asked);
  if (stepping.length) run.witnesses.handled.fill(0); // so that the loop waits after every event
  const { rows, pace, system } = run;
  rows.recording = 1;
  rows.width = STATE + system.n + system.m;
  rows.discrete = STATE + system.n;
  rows.held = system.m;
  rows.places = wholeNumbers([...Array(system.m).keys()]);
  rows.room = Math.max(MOST_ROWS, Math.min(1024, Math.ceil(65536 / rows.width)));
  rows.kinds = room(2 * rows.room);
  rows.table = room(rows.room * rows.width);
  pace.marks = room(MARKS).fill(asked.t0);
  pace.judged_at = STRIDE;
  pace.end = asked.tFinal;
  pace.most_steps = asked.budget;
  pace.deliberate = Math.min(asked.maxStep, ...equations.clocks.map(({ period }) => period));
  return { changing, stepping };
}

// Tell for each of some triggers whether events of a list belong to it.
function belongs(events, trigger, count) {
  return wholeNumbers(
    Array.from({ length: count }, (_, k) =>
      events.some((each) => each.trigger === trigger && each.number === k) ? 1 : 0,
    ),
  );
}

// The publishes that may end a run.
function ending() {
  return equations.events.filter(({ kind, values }) => kind === "publish" && values !== null);
}

// The function of the next break time, whose result goes to `out`.
function nextBreak(time, x, env, out) {
  const found = new Float64Array(equations.breaks.count);
  equations.breaks.values(time, x, env, found);
  const later = (least, each) => (each > time && each < least ? each : least);
  out[0] = found.reduce(later, Infinity);
}

function describeClocks(clocks, changing) {
  const count = equations.clocks.length;
  clocks.breaking = 1;
  clocks.breaks = nextBreak;
  clocks.count = count;
  clocks.periods = room(count);
  clocks.offsets = room(count);
  clocks.periods.set(equations.clocks.map(({ period }) => period));
  clocks.offsets.set(equations.clocks.map(({ offset }) => offset));
  clocks.updating = belongs(changing, "clock", count);
  clocks.publishing = belongs(ending(), "clock", count);
  clocks.publishes = clocks.publishing.includes(1) ? 1 : 0;
  clocks.ticks = room(count);
  clocks.publish_ticks = room(count);
}

function describeUpdates({ updates, system }, changing) {
  const ends = [0];
  for (const { targets } of changing) ends.push(ends.at(-1) + targets.length);
  const moved = system.n - equations.states; // by the state of a model that has none
  const place = (target) => (target < equations.states ? target : target + moved);
  const number = (wanted) => ({ trigger, number }) => (trigger === wanted ? number : -1);
  const isUnrestricted = ({ kind }) => (kind === "unrestricted" ? UNRESTRICTED : DISCRETE);
  updates.count = changing.length;
  updates.functions = changing.map(({ values }) => values);
  updates.unrestricted = wholeNumbers(changing.map(isUnrestricted));
  updates.clock = wholeNumbers(changing.map(number("clock")));
  updates.trigger = wholeNumbers(changing.map(number("witness")));
  updates.pending = wholeNumbers(changing.map(() => 0));
  updates.settling = wholeNumbers(changing.map((each) => (each.trigger === "settling" ? 1 : 0)));
  updates.settles = updates.settling.some((each) => each === 1) ? 1 : 0;
  updates.first_target = wholeNumbers(ends);
  updates.targets = wholeNumbers(changing.flatMap(({ targets }) => targets.map(place)));
  updates.staged = room(system.n);
  updates.results = room(ends.at(-1));
}

function describeWitnesses(witnesses, changing, asked) {
  const w = equations.witnesses.count;
  const samples = 5 + 4 * w;
  const sizes = { surface: w, first: w, samples: samples * w, instants: samples, slopes: 4 * w };
  for (const [name, size] of Object.entries(sizes)) witnesses[name] = room(size);
  witnesses.peaks = room(w);
  witnesses.search = room(SEARCH_SIZE);
  witnesses.count = w;
  witnesses.values = equations.witnesses.values;
  witnesses.directions = wholeNumbers(equations.witnesses.directions);
  witnesses.turning = belongs(changing, "witness", w);
  witnesses.handled = belongs(ending(), "witness", w).map((ends) => 1 - ends);
  witnesses.longest = Math.min(equations.witnesses.longest, asked.longest);
  if (equations.states === 0) witnesses.longest = Math.min(witnesses.longest, asked.maxStep);
  for (const name of ["on_surface", "fast", "leaping"]) witnesses[name] = new Int32Array(Math.max(w, 1));
  witnesses.order = new Int32Array(samples);
}

// The memory of a method that carries on where another one has ended a motion.
function withOtherMethod(run, other) {
  const parts = ["clocks", "updates", "witnesses", "rows", "pace", "counts"];
  for (const part of parts) other[part] = run[part];
  other.boundary = run.boundary;
  other.jump = run.jump;
  other.motion.changed = run.motion.changed;
  other.manifold.allowed = run.manifold.allowed;
  other.step.x.set(run.step.x);
  other.step.time = other.step.time_old = other.step.time_new = run.step.time;
  return other;
}

// What is kept of a run: its steps and changes, the events, and what ends it; and signals at any
// times, for which steps are taken again and looked into.
// It reads the rows that the loops write, and needs what `run_memory.js` needs and gives.

const BLOCK = 16384; // numbers that are reserved at once

function newRecorder(asked, env) {
  const n = Math.max(equations.states, 1);
  const m = equations.discrete;
  const held = Float64Array.from(env); // with the discrete values that hold at present
  const ends = ending();
  const verdict = room(1);
  const events = [];
  const watches = equations.witnesses.directions.map(() => room(WATCH_SIZE));
  const present = { time: asked.t0, x: room(n) }; // where the reading has come to
  const record = { t0: asked.t0, x: room(n), env: held, discrete: STATE + n, rows: [] };
  let block = room(0); // of rows that are kept
  let used = 0;

  // What the publishes of a trigger say at a time: null unless one of them ends the run.
  function verdictOf(trigger, number, time, x) {
    for (const each of ends) {
      if (each.trigger === trigger && each.number === number) {
        each.values(time, x, held, verdict);
        if (verdict[0] !== 0) return { outcome: "terminated", message: each.reason };
      }
    }
    return null;
  }

  // Note the events of a witness function, and tell whether they end the run.
  function note(number, time, x) {
    const due = equations.events.filter(
      (each) => each.trigger === "witness" && each.number === number,
    );
    for (const { path } of due) events.push({ time, path });
    const found = verdictOf("witness", number, time, x);
    if (found !== null || !piles_up(watches[number], 0, time, false)) return found;
    const message =
      `Cannot advance '${info.name}' past t = ${time}: the events ${witnessed(number)} follow ` +
      "each other closer and closer. Let the update end the motion when it becomes small, or " +
      "give a relay some hysteresis";
    return { outcome: "failed", message };
  }

  // Keep a row of a step or a change, and go on to it.
  function append(method, kind, run, row) {
    const { width, discrete } = run.rows;
    if (used + width > block.length) [block, used] = [room(Math.max(BLOCK, width)), 0];
    for (let i = 0; i < width; i++) block[used + i] = row[i];
    const numbers = block.subarray(used, used + width);
    used += width;
    record.rows.push({ method, kind, clip: row[CLIP], numbers });
    if (kind === CHANGE) for (let i = 0; i < m; i++) held[i] = row[discrete + i];
    for (let i = 0; i < n; i++) present.x[i] = row[STATE + i];
    present.time = row[TIME];
  }

  function readRow(method, run, kind, mask, row) {
    const time = row[TIME];
    let found = null;
    if (kind === CHANGE) {
      append(method, kind, run, row);
    } else if (kind === STEP) {
      append(method, kind, run, row);
      found = verdictOf("step", -1, time, present.x);
    } else if (kind === CROSSING) {
      for (const k of bitsOf(mask)) found ??= note(k, time, present.x);
    } else if (kind === SAMPLE && ends.length > 0) {
      const x = row.subarray(STATE, STATE + n);
      for (const k of bitsOf(mask)) found ??= verdictOf("clock", k, time, x);
      const isInside = time !== present.time; // of a step, with which the run then ends
      if (found !== null && isInside) append(method, STEP, run, row);
    }
    return found;
  }

  return {
    events,
    present,
    record,
    // Begin with the values behind initialization; return what ends the run at once.
    begin(x, due) {
      present.x.set(x);
      held.set(env.subarray(0, m));
      record.x.set(x);
      record.env = Float64Array.from(held);
      let found = verdictOf("initialization", -1, asked.t0, x);
      found ??= verdictOf("step", -1, asked.t0, x);
      for (const clock of due) found ??= verdictOf("clock", clock, asked.t0, x);
      return found;
    },
    // Read the rows of a run; return what ends it, if something does.
    take(method, run) {
      const { kinds, table, width, used: count } = run.rows;
      run.rows.used = 0;
      for (let r = 0; r < count; r++) {
        const row = table.subarray(r * width, (r + 1) * width);
        const found = readRow(method, run, kinds[2 * r], kinds[2 * r + 1], row);
        if (found !== null) return found;
      }
      return null;
    },
  };
}

// The positions of the bits of a mask, which may have more than a whole number of the processor.
function bitsOf(mask) {
  const found = [];
  for (let k = 0; mask > 0; k++, mask = Math.floor(mask / 2)) if (mask % 2 === 1) found.push(k);
  return found;
}

// The names of the events of a witness function.
function witnessed(number) {
  const found = equations.events.filter(
    (each) => each.trigger === "witness" && each.number === number,
  );
  return found.map(({ path }) => `'${path}'`).join(" and ");
}

// The values of signals at ascending times, as {time, signals}: at those that the run has reached,
// and with `sides` also both values where something jumps, and those at the end.
function readSignals(record, paths, times, sides, asked) {
  const reader = signalReader(paths);
  const held = Float64Array.from(record.env);
  const n = Math.max(equations.states, 1);
  const m = equations.discrete;
  const repeaters = {}; // memory in which steps are repeated, by method
  const values = room(reader.size);
  const kept = { times: [], values: [], beside: [] };
  // Where the reading has come to. Signals are evaluated at the limit before equations jump.
  let present = { time: record.t0, limit: record.t0, x: record.x };
  let next = 0; // of the times

  function keep(time, instant, x, beside) {
    reader.read(instant, x, held, values);
    kept.times.push(time);
    for (let i = 0; i < reader.size; i++) kept.values.push(values[i]);
    kept.beside.push(beside);
  }

  // Read the present, up to which nothing happens any more.
  function keepPresent() {
    const { time, limit, x } = present;
    if (sides && limit !== time) {
      keep(time, limit, x, true);
      keep(time, time, x, true);
    }
    while (next < times.length && times[next] <= time) keep(times[next++], time, x, false);
  }

  // Read the times before one at which nothing has moved yet.
  function keepStill(end) {
    keepPresent();
    for (; next < times.length && times[next] < end; next++) {
      keep(times[next], times[next], present.x, false);
    }
  }

  // Read the times inside of a step that begins with the present values.
  function keepInside({ method, clip, numbers }) {
    keepPresent();
    let last = next;
    while (last < times.length && times[last] < numbers[TIME]) last++;
    const count = last - next;
    if (count === 0) return;
    repeaters[method] ??= newMemory(method, asked, held);
    const instants = times.subarray(next, last);
    const states = room(count * n);
    const span = Float64Array.of(numbers[BEGIN], numbers[END], clip);
    const before = held.slice(0, m);
    const step = [1, span, 0, present.x, 0, before, 0, [count], 0];
    loops[method].resample(repeaters[method], ...step, instants, 0, states, 0);
    for (let k = 0; k < count; k++, next++) {
      keep(times[next], times[next], states.subarray(k * n, (k + 1) * n), false);
    }
  }

  for (const row of record.rows) {
    const { kind, clip, numbers } = row;
    const time = numbers[TIME];
    const x = numbers.subarray(STATE, STATE + n);
    if (kind === STEP) {
      keepInside(row);
      present = { time, limit: Math.min(time, clip), x };
    } else {
      if (time > present.time) keepStill(time); // after a stop that was too close to move
      if (sides) keep(present.time, present.limit, present.x, true);
      for (let i = 0; i < m; i++) held[i] = numbers[record.discrete + i];
      present = { time, limit: time, x };
      if (sides) keep(time, time, x, true);
    }
  }
  keepPresent();
  const { time, x } = present;
  if (sides && kept.times.at(-1) !== time) keep(time, time, x, false);
  return tabled(kept, reader, paths, times.length);
}

// What was read as {time, signals}, with an array for each signal; what stands beside jumps is left
// out where it is more than all else.
function tabled(kept, reader, paths, count) {
  const crowded = kept.beside.filter(Boolean).length > Math.max(count, 100);
  const wanted = [...kept.times.keys()].filter((k) => !(crowded && kept.beside[k]));
  const columns = paths.map((path, s) => {
    const start = reader.starts[s];
    const size = (reader.starts[s + 1] ?? reader.size) - start;
    const column = new Float64Array(wanted.length * size);
    wanted.forEach((k, row) => {
      const from = k * reader.size + start;
      for (let i = 0; i < size; i++) column[row * size + i] = kept.values[from + i];
    });
    return [path, column];
  });
  return {
    time: Float64Array.from(wanted, (k) => kept.times[k]),
    signals: Object.fromEntries(columns), // which may be called __proto__
  };
}

// Times at equal distances.
function evenTimes(first, last, count) {
  const share = (last - first) / (count - 1);
  return Float64Array.from({ length: count }, (_, k) => (k < count - 1 ? first + k * share : last));
}

// Signals are polynomials over pieces of steps, through their values at some places from -1 to 1, by
// the rules of `flexure.solvers.results`; it is seen at one place more whether they are.
const LOOKS = [-1, -Math.SQRT1_2, 0, 0.4, Math.SQRT1_2, 1];
const CHECK = 3;
const MISSED = 1e-11; // of the largest magnitude, beyond which a piece is halved
const SHORTEST = 2 ** -30; // of a step
const NODES = LOOKS.filter((_, k) => k !== CHECK);
const WEIGHTS = NODES.map((node) =>
  NODES.reduce((w, each) => (each === node ? w : (w * (LOOKS[CHECK] - each)) / (node - each)), 1),
);

// Signals in all steps as {begin, end, signals}: when pieces begin and end, and for each signal its
// components at the nodes of one piece after the other.
function denseSignals(record, paths, asked) {
  const reader = signalReader(paths);
  const { size } = reader;
  const held = Float64Array.from(record.env);
  const n = Math.max(equations.states, 1);
  const repeaters = {};
  const out = room(size);
  const [times, states] = [room(LOOKS.length), room(LOOKS.length * n)];
  const m = equations.discrete;
  const [span, before] = [room(3), room(m)];
  const count = [LOOKS.length];
  const found = [];
  let scale = 0;

  // What is seen in a piece of a step that begins with some state.
  function look({ method, clip, numbers }, from, a, b) {
    repeaters[method] ??= newMemory(method, asked, held);
    const repeater = repeaters[method];
    LOOKS.forEach((z, k) => (times[k] = Math.min(a + (b - a) * (0.5 * (z + 1)), b)));
    for (let i = 0; i < m; i++) before[i] = held[i];
    [span[0], span[1], span[2]] = [numbers[BEGIN], numbers[END], clip];
    const step = [1, span, 0, from, 0, before, 0, count, 0];
    loops[method].resample(repeater, ...step, times, 0, states, 0);
    const last = (times.length - 1) * n;
    if (a === numbers[BEGIN]) for (let i = 0; i < n; i++) states[i] = from[i];
    if (b === numbers[TIME]) for (let i = 0; i < n; i++) states[last + i] = numbers[STATE + i];
    const seen = new Float64Array(times.length * size);
    for (let k = 0; k < times.length; k++) {
      reader.read(Math.min(times[k], clip), states.subarray(k * n, (k + 1) * n), held, out);
      for (let i = 0; i < size; i++) seen[k * size + i] = out[i];
    }
    return { a, b, seen };
  }

  function misses({ seen }) {
    for (let i = 0; i < size; i++) {
      let sum = 0;
      WEIGHTS.forEach((w, k) => (sum += w * seen[(k < CHECK ? k : k + 1) * size + i]));
      if (Math.abs(sum - seen[CHECK * size + i]) > MISSED * scale) return true;
    }
    return false;
  }

  function add(row, from, piece) {
    const { a, b } = piece;
    const { numbers } = row;
    if (b - a > SHORTEST * (numbers[TIME] - numbers[BEGIN]) && misses(piece)) {
      const middle = 0.5 * (a + b);
      add(row, from, look(row, from, a, middle));
      add(row, from, look(row, from, middle, b));
    } else {
      found.push(piece);
    }
  }

  // Go through the steps, with the state with which each begins.
  function walk(visit) {
    held.set(record.env);
    let from = record.x;
    for (const row of record.rows) {
      const { kind, numbers } = row;
      if (kind === CHANGE) for (let i = 0; i < m; i++) held[i] = numbers[record.discrete + i];
      else if (numbers[TIME] > numbers[BEGIN]) visit(row, from);
      from = numbers.subarray(STATE, STATE + n);
    }
  }

  const whole = [];
  walk((row, from) => whole.push(look(row, from, row.numbers[BEGIN], row.numbers[TIME])));
  for (const { seen } of whole) scale = seen.reduce((m, v) => Math.max(m, Math.abs(v)), scale);
  whole.reverse();
  walk((row, from) => add(row, from, whole.pop()));
  const signals = paths.map((path, s) => {
    const start = reader.starts[s];
    const count = (reader.starts[s + 1] ?? size) - start;
    const column = new Float64Array(found.length * NODES.length * count);
    let at = 0;
    for (const { seen } of found) {
      for (let k = 0; k < LOOKS.length; k++) {
        if (k === CHECK) continue;
        column.set(seen.subarray(k * size + start, k * size + start + count), at);
        at += count;
      }
    }
    return [path, column];
  });
  const [begin, end] = ["a", "b"].map((name) => Float64Array.from(found, (each) => each[name]));
  return { begin, end, signals: Object.fromEntries(signals) };
}

// Runs of a model: what is asked for, what is done between the calls of a loop, and what is told.
// It needs the loops of `loops.py`, and what `recorder.js` needs and gives.

const knownOptions = [
  ...["parameters", "initial", "inputs", "time", "tFinal", "samples", "times", "signals", "dense"],
  ...["method", "rtol", "atol", "maxStep", "maxCheckInterval", "budget", "assemble"],
];

const MOST_DOUBTS = 8;

function refuse(what, expected, found) {
  throw new Error(
    `Cannot simulate '${info.name}': expected ${what} to be ${expected}, found ${found}`,
  );
}

// What somebody asks for, checked, with what is used where nothing is said.
function checkedRun(options) {
  for (const name of Object.keys(options)) {
    if (!knownOptions.includes(name)) {
      refuse("the options", `some of ${quoted(knownOptions)}`, `'${name}'`);
    }
  }
  const number = (name, otherwise, least, expected) => {
    const value = options[name] ?? otherwise;
    if (typeof value !== "number" || !(value >= least)) refuse(name, expected, String(value));
    return value;
  };
  const positive = (name, otherwise) =>
    number(name, otherwise, Number.MIN_VALUE, "a number above 0");
  const finite = (name, otherwise) => {
    if (options[name] === Infinity) refuse(name, "a finite number", "Infinity");
    return positive(name, otherwise);
  };
  const t0 = number("time", start.time, -Number.MAX_VALUE, "a number");
  const tFinal = number("tFinal", NaN, t0, `a time not before ${t0}`);
  if (tFinal === Infinity) refuse("tFinal", "finite", "Infinity");
  const rtol = number("rtol", usual.rtol, 100 * Number.EPSILON, "at least 2.2e-14");
  if (rtol >= 0.1) refuse("rtol", "below 0.1", String(rtol));
  const known = Object.keys(loops);
  if (known.includes(NONSTIFF_METHOD) && known.includes(STIFF_METHOD)) known.push("auto");
  const method = options.method ?? usual.method;
  if (!known.includes(method)) refuse("the method", `one of ${quoted(known)}`, `'${method}'`);
  if (loops[method]?.linear && equations.jacobian === null) {
    throw new Error(`Cannot simulate '${info.name}' with ${method}: ${equations.noJacobian}`);
  }
  const signals = options.signals ?? info.signals.map(({ path }) => path);
  const dense = options.dense ?? [];
  for (const [name, paths] of Object.entries({ signals, dense })) {
    if (!Array.isArray(paths)) refuse(name, "a list of paths", String(paths));
    signalReader(paths); // refuses what is not there, before anything runs
  }
  const latest = Math.max(Math.abs(t0), Math.abs(tFinal));
  for (const { period, offset } of equations.clocks) {
    if (offset < tFinal && !(period > 10 * spacing(latest))) {
      refuse("the period of a clock", "resolved by time", String(period));
    }
  }
  return {
    ...{ t0, tFinal, rtol, method, signals, dense },
    atol: finite("atol", rtol / 1000),
    maxStep: positive("maxStep", Infinity),
    longest: positive("maxCheckInterval", Infinity),
    budget: number("budget", 100000, 1, "a number of steps"),
    ...checkedTimes(options, t0, tFinal),
    doubts: { time: NaN, count: 0, words: "" }, // about the events of a step, one after the other
  };
}

// The times to sample, or how many of them, at equal distances up to where the run comes.
function checkedTimes({ times, samples = 500 }, t0, tFinal) {
  if (times === undefined) {
    if (!Number.isInteger(samples) || samples < 2) {
      refuse("samples", "a whole number from 2 on", String(samples));
    }
    return { samples };
  }
  if (!Array.isArray(times) && !ArrayBuffer.isView(times)) {
    refuse("times", "a list of numbers", String(times));
  }
  return {
    times: Float64Array.from(times).map((time, k, all) => {
      if (!(time >= (k ? all[k - 1] : t0) && time <= tFinal)) {
        refuse("times", `ascending from ${t0} to ${tFinal}`, String(time));
      }
      return time;
    }),
  };
}

// Refuse numbers that a model cannot have; how many there are is known to be right.
function checkNumbers({ parameters = {}, inputs = {}, initial = {} }) {
  for (const [path, value] of Object.entries({ ...parameters, ...inputs, ...initial })) {
    const row = info.parameters.find((each) => each.path === path); // others have no bounds
    const numbers = typeof value === "number" ? [value] : Array.from(value);
    numbers.forEach((number, k) => {
      const low = row?.lower[k] ?? -Infinity;
      const high = row?.upper[k] ?? Infinity;
      const isOpen = row?.exclusive ?? false;
      const isInside = isOpen ? number > low && number < high : number >= low && number <= high;
      if (isInside && (Number.isFinite(number) || row?.infinite)) return;
      const range = isOpen ? `between ${low} and ${high}` : `from ${low} to ${high}`;
      throw new Error(`Cannot set '${path}': expected a number ${range}, found ${number}`);
    });
  }
}

// Run the initialization updates: the unrestricted ones, and then the discrete ones; return how
// many there are.
function initialize(time, x, env) {
  let count = 0;
  for (const kind of ["unrestricted", "discrete"]) {
    const due = equations.events.filter(
      (each) => each.trigger === "initialization" && each.kind === kind,
    );
    const found = due.map(({ values, targets }) => {
      const out = new Float64Array(targets.length);
      values(time, x, env, out);
      return out;
    });
    due.forEach(({ targets }, k) => {
      targets.forEach((target, i) => {
        if (target < equations.states) x[target] = found[k][i];
        else env[target - equations.states] = found[k][i];
      });
    });
    count += due.length;
  }
  return count;
}

// Errors of constraints that are larger than a motion may begin with, in words.
function badStart(time, x, env) {
  const { what, values } = equations.starts;
  const pairs = new Float64Array(2 * what.length);
  values(time, x, env, pairs);
  return what.flatMap((each, k) => {
    const [value, limit] = pairs.subarray(2 * k);
    return value <= limit ? [] : [`${each} ${value.toPrecision(3)}, above ${limit.toPrecision(3)}`];
  });
}

// Refuse them.
function requireStart(time, x, env) {
  const found = badStart(time, x, env);
  if (found.length) {
    const attempt = `Cannot begin with these positions and velocities of '${info.name}'`;
    throw new Error(`${attempt}: expected constraints that are met; found ${found.join(", ")}`);
  }
}

// The clocks that tick at a time.
function clocksDue(time) {
  const before = nextafter$(time, -Infinity);
  return [...equations.clocks.keys()].filter((k) => {
    const { period, offset } = equations.clocks[k];
    return time >= offset && next_tick(period, offset, before) === time;
  });
}

// Run the model to its end.
function simulate(options = {}) {
  const run = begin(options);
  while (!run.advance(Infinity));
  return run.finish();
}

// Begin a run that goes on in parts: `advance(steps)` takes some steps and tells whether the run
// has ended, `stop()` ends it where it is, and `finish()` gives what it has come to.
function begin(options) {
  const asked = checkedRun(options);
  const { time, x, env } = startingValues(options);
  checkNumbers(options);
  const initialized = initialize(time, x, env);
  const assembled = assemble(time, x, env, options.assemble === true);
  requireStart(time, x, env);
  const mayChange = asked.method === "auto" && equations.jacobian !== null && equations.states > 0;
  const isStiff = mayChange && asked.tFinal - time > stiffFrom;
  let name = asked.method === "auto" ? NONSTIFF_METHOD : asked.method;
  if (isStiff) name = STIFF_METHOD;
  const methods = [{ time, method: name }];
  let run = newMemory(name, asked, env);
  const { changing, stepping } = describeEvents(run, asked);
  run.stiffness.watching = mayChange && !isStiff ? 1 : 0;
  run.step.x.set(x);
  run.step.time = run.step.time_old = run.step.time_new = time;
  const settled = run.updates.settles === 0 || settle(run);
  run.motion.changed = 0;
  x.set(run.step.x.subarray(0, x.length));
  const due = clocksDue(time);
  changing.forEach(({ trigger, number }, e) => {
    if (trigger === "clock" && due.includes(number)) run.updates.pending[e] = 1;
  });
  run.boundary = asked.tFinal;
  run.jump = Infinity; // until the first motion finds it
  const recorder = newRecorder(asked, env);
  let left = asked.budget;
  let end = recorder.begin(run.step.x, due);
  let stepped = NaN; // when the updates of every step have run
  if (!settled) end ??= failed(badUpdate(run, changing) ?? unsettled(run));
  if (time === asked.tFinal) end ??= { outcome: "completed", message: "" };

  function advance(most) {
    if (end !== null) return true;
    const { step, motion, counts } = run;
    if (stepping.length) {
      if (motion.moving === 0) waitForStep(run, asked, step.time === stepped ? [] : stepping);
      stepped = step.time;
      run.budget = 1;
    } else {
      run.budget = most < left ? most : left; // which stays a whole number for engines
    }
    const before = counts.steps;
    const status = loops[name].advance(run);
    left -= Math.max(1, counts.steps - before, sampleRows(run.rows));
    end = recorder.take(name, run) ?? judge(run, status, left, asked, changing);
    if (end !== null) return true;
    if (status === STIFF) {
      name = STIFF_METHOD;
      methods.push({ time: step.time, method: name });
      run = withOtherMethod(run, newMemory(name, asked, env));
    } else if (stepping.length && motion.moving === 1 && motion.unpublished === 0) {
      end = updateInside(run, stepping, changing);
      stepped = step.time;
    }
    return end !== null;
  }

  function finish() {
    const { counts } = run;
    const { record, events, present } = recorder;
    const { signals, dense, t0, samples } = asked;
    const times = asked.times ?? evenTimes(t0, present.time, samples);
    return {
      ...end,
      ...readSignals(record, signals, times, asked.times === undefined, asked),
      ...(dense.length && { dense: denseSignals(record, dense, asked) }),
      events,
      assembled,
      state: present.x.slice(0, equations.states),
      statistics: {
        methods,
        ...{ steps: counts.steps, rejected: counts.rejected, restarts: counts.restarts },
        ...{ evaluations: counts.evaluations, jacobians: counts.jacobians },
        factorizations: counts.factorizations,
        updates: initialized + counts.discrete_updates + counts.unrestricted_updates,
      },
    };
  }

  return {
    advance,
    stop() {
      end ??= { outcome: "interrupted", message: `it was stopped at t = ${recorder.present.time}` };
    },
    finish,
  };
}

// Where there are updates at every step, they wait for the next one with those of the clocks; the
// loop takes one step in each call, and ends it at clocks.
function waitForStep(run, asked, stepping) {
  for (const e of stepping) run.updates.pending[e] = 1;
  find_ticks(run.clocks, run.step.time);
  run.boundary = next_stop(run.clocks, 0, asked.tFinal);
}

// How many ticks of clocks that may end a run have been noted since rows were read.
function sampleRows({ kinds, used }) {
  let count = 0;
  for (let r = 0; r < used; r++) if (kinds[2 * r] === SAMPLE) count += 1;
  return count;
}

// Run the updates of every step inside of a motion, which ends where they change something.
function updateInside(run, stepping, changing) {
  for (const e of stepping) run.updates.pending[e] = 1;
  if (!update(run, UNRESTRICTED) || !update(run, DISCRETE)) {
    return failed(badUpdate(run, changing));
  }
  if (run.motion.changed === 1) finish_motion(run);
  return null;
}

function failed(why) {
  return { outcome: "failed", message: `Cannot simulate '${info.name}': ${why}` };
}

// What a call of a loop means for the run: null where it goes on.
function judge(run, status, left, { tFinal, budget, doubts }, changing) {
  const { step, motion } = run;
  if (status === DOUBTFUL && motion.moving === 1 && motion.verdict !== DOUBTFUL) {
    doubts.count = doubts.time === step.time ? doubts.count + 1 : 1;
    doubts.time = step.time;
    doubts.words ||=
      `the ${witnessesOf(run)} may have been missed from t = ${step.time} on: a function varies ` +
      "too fast. Take smaller tolerances, maxStep or maxCheckInterval";
    if (doubts.count < MOST_DOUBTS && left > 0) {
      motion.moving = 0; // in a shorter step, events may be told
      step.h_next /= 8;
      return null;
    }
  }
  if (status === DEPARTED) return stayBeside(run, doubts);
  if (status === SLOW) {
    return failed(`at the pace before t = ${step.time}, more than ${budget} steps would be needed`);
  }
  const why = status === DOUBTFUL ? doubt(run, changing) : null;
  if (why !== null) return failed(why);
  if (motion.moving === 0 && step.time >= tFinal) {
    return { outcome: "completed", message: doubts.words };
  }
  return left > 0 ? null : failed(`more than ${budget} steps, up to t = ${step.time}`);
}

// Go on with a state that projections do not bring to where it belongs, unless it is far away.
function stayBeside({ manifold, step, system }, doubts) {
  manifold.deviations(manifold.time, step.x, system.env, manifold.values);
  const most = Math.max(...manifold.values.map(Math.abs));
  const where = `the state misses its tolerance at t = ${manifold.time}`;
  if (!(most <= FAR)) return failed(`${where}, by a factor of ${most}`);
  doubts.words ||= `${where}, by a factor of ${most}`;
  manifold.allowed = ROOM * most;
  manifold.answer = KEPT;
  return null;
}

// Why a loop could not go on, in words; null where it can, after a stop that is too close to move.
function doubt(run, changing) {
  const { step, system, motion, witnesses } = run;
  const at = `at t = ${step.time}`;
  const badly = badUpdate(run, changing);
  if (badly !== undefined) return badly;
  if (run.updates.unsettled > 0) return unsettled(run);
  if (motion.moving === 1 && motion.verdict === DOUBTFUL) {
    return (
      `no step is short enough ${at}: the equations are not finite or not smooth there; ` +
      `the state ${fastestState(run)}`
    );
  }
  if (motion.moving === 1) {
    return (
      `the ${witnessesOf(run)} cannot be told ${at}: a function varies too fast, is not ` +
      "finite, or moves on where its update has brought it. Take smaller tolerances, maxStep or " +
      "maxCheckInterval"
    );
  }
  if (!(motion.stop - step.time > 4 * spacing(step.time))) {
    note_change(run);
    step.time = step.time_old = step.time_new = motion.stop;
    finish_motion(run);
    return null;
  }
  const bad = (values, count) => values.subarray(0, count).findIndex((each) => !isFinite(each));
  const rates = room(system.n);
  system.rhs(Math.min(step.time, step.clip), step.x, system.env, rates);
  const state = info.states[bad(rates, equations.states)];
  if (state !== undefined) return `the derivative of the state '${state.path}' is not finite ${at}`;
  const signs = room(witnesses.count);
  witnesses.values(step.time, step.x, system.env, signs);
  return `the witness function of ${witnessed(bad(signs, witnesses.count))} is not finite ${at}`;
}

function unsettled({ step, updates, witnesses }) {
  if (updates.unsettled === 1) {
    return `settling updates go on to change values at t = ${step.time}`;
  }
  const leaping = [...witnesses.leaping.keys()].filter((k) => witnesses.leaping[k] === 1);
  const events = leaping.map(witnessed).join(" and ");
  return `the events ${events} go on to cause each other at t = ${step.time}`;
}

function witnessesOf({ witnesses }) {
  return `events ${quoted([...Array(witnesses.count).keys()].map(witnessed))}`;
}

// Which pending update gives no finite numbers, in words.
function badUpdate({ step, system, updates }, changing) {
  const bad = changing.find(({ values, targets }, e) => {
    if (updates.pending[e] === 0) return false;
    values(step.time, step.x, system.env, updates.results);
    return !updates.results.subarray(0, targets.length).every(Number.isFinite);
  });
  return bad && `the update '${bad.path}' gives no finite numbers at t = ${step.time}`;
}

// The state that moves fastest, measured by its tolerance, in words.
function fastestState({ step, tolerances }) {
  const speeds = info.states.map((_, i) => {
    const speed = Math.abs(step.k[i]);
    return speed / (tolerances.atol[i] + tolerances.rtol[i] * Math.abs(step.x[i]));
  });
  const most = speeds.findIndex((each) => each !== each);
  const i = most >= 0 ? most : speeds.indexOf(Math.max(...speeds));
  return `'${info.states[i]?.path}' moves fastest (value ${step.x[i]}, rate ${step.k[i]})`;
}

return { info, evaluate, simulate, begin, startingValues, signalReader,
equations };
}
if (typeof module !== "undefined") module.exports = flexureModel;
