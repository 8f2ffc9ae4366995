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
