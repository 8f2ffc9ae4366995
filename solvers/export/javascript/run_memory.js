// The memory of runs: a structure with its arrays for the loops of one method.
// It needs the loops of `model_text.py`, and `equations`.

function room(count) {
  return new Float64Array(Math.max(count, 1));
}

// Put what is known into a structure and its parts.
function put(known, structure) {
  for (const [name, value] of Object.entries(known)) {
    if (typeof value === "number" || ArrayBuffer.isView(value)) structure[name] = value;
    else put(value, structure[name]);
  }
  return structure;
}

// The structure of a run; without states it has one, which rests.
function newMemory(name, asked, env) {
  const loop = loops[name];
  const run = put(equations.memory(), newRun());
  const { system, tolerances, step, linear, manifold } = run;
  const rest = (t, x, values, out) => {
    out[0] = 0;
  };
  system.env = env;
  system.rhs = equations.states ? equations.rhs : rest;
  system.attempt = loop.attempt;
  tolerances.rtol.fill(asked.rtol);
  tolerances.atol.fill(asked.atol);
  tolerances.max_step = asked.maxStep;
  step.k = room(loop.rows * system.n);
  step.q = room(loop.bends * system.n);
  step.keeping = 1;
  linear.jacobian = equations.jacobian && equations.jacobian.values;
  manifold.env = env;
  manifold.deviations = equations.manifold.deviations;
  manifold.projection = equations.manifold.projection;
  manifold.allowed = 1;
  return run;
}

// Put the events of the model into a run, and room for what the loop writes down; return the
// updates in their order, and those of them that are due at every step.
function describeEvents(run, asked) {
  const changing = equations.events.filter(({ kind }) => kind !== "publish");
  const stepping = [...changing.keys()].filter((e) => changing[e].trigger === "step");
  const { rows, pace, system, witnesses } = run;
  run.clocks.breaks = nextBreak;
  run.updates.functions = changing.map(({ values }) => values);
  witnesses.values = equations.witnesses.values;
  witnesses.longest = Math.min(witnesses.longest, asked.longest);
  if (equations.states === 0) witnesses.longest = Math.min(witnesses.longest, asked.maxStep);
  rows.recording = 1;
  rows.width = STATE + system.n + system.m;
  rows.discrete = STATE + system.n;
  rows.held = system.m;
  rows.places = Int32Array.from(Array(system.m).keys());
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
