// Runs of a model: the memory of the loops, what is done between their calls, and what is kept.
// It needs the loops of `loops.py`, and what `evaluate.js` needs and gives.

const knownOptions = [
  ...["parameters", "initial", "inputs", "time", "tFinal", "samples", "times", "signals"],
  ...["method", "rtol", "atol", "maxStep", "maxCheckInterval", "budget"],
];

// What somebody asks for, checked, with what is used where nothing is said.
function checkedRun(options) {
  const refuse = (what, expected, found) => {
    throw new Error(`Cannot simulate '${info.name}': expected ${what} to be ${expected}, found ${found}`);
  };
  for (const name of Object.keys(options)) {
    if (!knownOptions.includes(name)) {
      throw new Error(`Cannot simulate '${info.name}': no option '${name}', known are ${quoted(knownOptions)}`);
    }
  }
  const number = (name, otherwise, least, expected) => {
    const value = options[name] ?? otherwise;
    if (typeof value !== "number" || !(value >= least)) refuse(name, expected, String(value));
    return value;
  };
  const t0 = number("time", start.time, -Number.MAX_VALUE, "a number");
  const tFinal = number("tFinal", NaN, t0, `a time not before ${t0}`);
  if (!(tFinal < Infinity)) refuse("tFinal", "finite", String(tFinal));
  const rtol = number("rtol", 1e-6, 100 * Number.EPSILON, "at least 2.2e-14");
  const atol = number("atol", rtol / 1000, Number.MIN_VALUE, "a number above 0");
  const maxStep = number("maxStep", Infinity, Number.MIN_VALUE, "a number above 0");
  const longest = number("maxCheckInterval", Infinity, Number.MIN_VALUE, "a number above 0");
  const budget = number("budget", 100000, 1, "a number of steps");
  const method = options.method ?? defaultMethod;
  const known = Object.keys(loops);
  if (known.includes(NONSTIFF_METHOD) && known.includes(STIFF_METHOD)) known.push("auto");
  if (!known.includes(method)) refuse("method", `one of ${quoted(known)}`, `'${method}'`);
  if (loops[method]?.linear && equations.jacobian === null) {
    throw new Error(`Cannot simulate '${info.name}' with ${method}: ${equations.noJacobian}`);
  }
  let times = options.times;
  if (times === undefined) {
    const samples = number("samples", 500, 2, "a number of at least 2");
    const share = (tFinal - t0) / (samples - 1);
    times = Float64Array.from({ length: samples }, (_, k) => (k < samples - 1 ? t0 + k * share : tFinal));
  }
  times = Float64Array.from(times);
  times.forEach((time, k) => {
    if (!(time >= (k ? times[k - 1] : t0) && time <= tFinal)) {
      refuse("times", `ascending from ${t0} to ${tFinal}`, String(time));
    }
  });
  for (const { period, offset } of equations.clocks) {
    if (offset < tFinal && !(period > 10 * spacing(Math.max(Math.abs(t0), Math.abs(tFinal))))) {
      refuse("the period of a clock", "resolved by time", String(period));
    }
  }
  const sides = options.times === undefined;
  return { t0, tFinal, rtol, atol, maxStep, longest, budget, method, times, sides };
}

// Refuse numbers that a model cannot have.
function checkNumbers({ parameters = {}, inputs = {}, initial = {} }) {
  for (const [path, value] of Object.entries({ ...parameters, ...inputs, ...initial })) {
    const numbers = typeof value === "number" ? [value] : Array.from(value);
    const row = info.parameters.find((each) => each.path === path); // others have no bounds
    numbers.forEach((number, k) => {
      const low = row?.lower[k] ?? -Infinity;
      const high = row?.upper[k] ?? Infinity;
      const inside = row?.exclusive ? number > low && number < high : number >= low && number <= high;
      if (inside && (Number.isFinite(number) || row?.infinite)) return;
      const range = `a number ${row?.exclusive ? "between" : "from"} ${low} ${row?.exclusive ? "and" : "to"} ${high}`;
      throw new Error(`Cannot set '${path}': expected ${range}, found ${number}`);
    });
  }
}

// The structure of a run with its arrays, for one method.
function newMemory(name, asked, env) {
  const loop = loops[name];
  const run = newRun();
  const n = Math.max(equations.states, 1); // without states, one that rests
  const numbers = (count) => new Float64Array(Math.max(count, 1));
  const whole = (values) => Int32Array.from(values.length ? values : [0]);
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
  tolerances.rtol = numbers(n).fill(asked.rtol);
  tolerances.atol = numbers(n).fill(asked.atol);
  tolerances.max_step = asked.maxStep;
  for (const part of ["x", "x_old", "x_new", "work", "point", "time_slope"]) step[part] = numbers(n);
  step.k = numbers(loop.rows * n);
  step.q = numbers(loop.bends * n);
  step.keeping = 1;
  if (loop.linear) {
    const { rows, columns, values, factors } = equations.jacobian;
    linear.n = n;
    linear.jacobian = values;
    linear.nonzeros = rows.length;
    linear.rows = whole(rows);
    linear.columns = whole(columns);
    linear.entries = numbers(rows.length);
    linear.roomy = n <= 1000 ? 1 : 0;
    if (linear.roomy) {
      linear.matrix = numbers(n * n);
      linear.pivots = whole(new Array(n).fill(0));
    }
    if (factors) {
      linear.sparse = 1;
      for (const [field, value] of Object.entries(factors)) {
        linear.factors[field] = typeof value === "number" ? value : whole(value);
      }
      linear.values = numbers(factors.column.length);
      linear.row = numbers(n);
    }
  }
  return run;
}

// Put the events of the model into a run.
function describeEvents(run, asked) {
  const { clocks, updates, witnesses, rows, pace } = run;
  const all = equations.events;
  const whole = (values) => Int32Array.from(values.length ? values : [0]);
  const numbers = (values) => Float64Array.from(values.length ? values : [0]);
  const room = (count) => new Float64Array(Math.max(count, 1));
  const changing = all.filter((each) => each.kind !== "publish" && each.trigger !== "initialization");
  const ending = all.filter((each) => each.kind === "publish" && each.values !== null);
  const has = (events, trigger, number) =>
    events.some((each) => each.trigger === trigger && each.number === number) ? 1 : 0;
  clocks.count = equations.clocks.length;
  clocks.periods = numbers(equations.clocks.map((each) => each.period));
  clocks.offsets = numbers(equations.clocks.map((each) => each.offset));
  clocks.updating = whole(equations.clocks.map((_, k) => has(changing, "clock", k)));
  clocks.publishing = whole(equations.clocks.map((_, k) => has(ending, "clock", k)));
  clocks.publishes = clocks.publishing.some((each) => each) ? 1 : 0;
  clocks.ticks = room(clocks.count);
  clocks.publish_ticks = room(clocks.count);
  const ends = [0];
  changing.forEach((each) => ends.push(ends.at(-1) + each.targets.length));
  const moved = run.system.n - equations.states; // by the state of a model that has none
  const place = (target) => (target < equations.states ? target : target + moved);
  updates.count = changing.length;
  updates.functions = changing.map((each) => each.values);
  updates.unrestricted = whole(changing.map((e) => (e.kind === "unrestricted" ? UNRESTRICTED : DISCRETE)));
  updates.clock = whole(changing.map((e) => (e.trigger === "clock" ? e.number : -1)));
  updates.trigger = whole(changing.map((e) => (e.trigger === "witness" ? e.number : -1)));
  updates.pending = whole(changing.map(() => 0));
  updates.first_target = whole(ends);
  updates.targets = whole(changing.flatMap((each) => each.targets.map(place)));
  updates.staged = room(run.system.n + run.system.m);
  updates.results = room(Math.max(0, ...changing.map((each) => each.targets.length)));
  const w = equations.witnesses.count;
  const samples = 5 + 4 * w;
  witnesses.count = w;
  witnesses.values = equations.witnesses.values;
  witnesses.directions = whole(equations.witnesses.directions);
  witnesses.turning = whole(equations.witnesses.directions.map((_, k) => has(changing, "witness", k)));
  const stepping = changing.filter((each) => each.trigger === "step").map((each) => changing.indexOf(each));
  const waits = (k) => stepping.length > 0 || has(ending, "witness", k) === 1;
  witnesses.handled = whole(equations.witnesses.directions.map((_, k) => (waits(k) ? 0 : 1)));
  witnesses.longest = Math.min(equations.witnesses.longest, asked.longest);
  if (equations.states === 0) witnesses.longest = Math.min(witnesses.longest, asked.maxStep);
  witnesses.on_surface = whole(new Array(w).fill(0));
  witnesses.fast = whole(new Array(w).fill(0));
  witnesses.order = whole(new Array(samples).fill(0));
  const sizes = { surface: w, first: w, samples: samples * w, instants: samples, slopes: 4 * w, peaks: w };
  for (const [name, size] of Object.entries(sizes)) witnesses[name] = room(size);
  witnesses.search = room(SEARCH_SIZE);
  rows.recording = 1;
  rows.width = STATE + run.system.n + run.system.m;
  rows.discrete = STATE + run.system.n;
  rows.signals = rows.width;
  rows.room = Math.max(MOST_ROWS, Math.min(1024, Math.ceil(65536 / rows.width)));
  rows.kinds = room(2 * rows.room);
  rows.table = room(rows.room * rows.width);
  pace.marks = room(MARKS).fill(asked.t0);
  pace.judged_at = STRIDE;
  pace.end = asked.tFinal;
  pace.most_steps = asked.budget;
  pace.deliberate = Math.min(asked.maxStep, ...equations.clocks.map((each) => each.period));
  return { changing, ending, stepping };
}

// Run the initialization updates: the unrestricted ones, and then the discrete ones; return how
// many there are.
function initialize(time, x, env) {
  for (const kind of ["unrestricted", "discrete"]) {
    const due = equations.events.filter((each) => each.trigger === "initialization" && each.kind === kind);
    const found = due.map((each) => {
      const out = new Float64Array(each.targets.length);
      each.values(time, x, env, out);
      return out;
    });
    due.forEach((each, k) => {
      each.targets.forEach((target, i) => {
        if (target < equations.states) x[target] = found[k][i];
        else env[target - equations.states] = found[k][i];
      });
    });
  }
  return equations.events.filter((each) => each.trigger === "initialization" && each.kind !== "publish").length;
}

function isDue(clock, time) {
  const { period, offset } = equations.clocks[clock];
  return time >= offset && next_tick(period, offset, nextafter$(time, -Infinity)) === time;
}

function nextBreak(time, x, env) {
  const found = new Float64Array(equations.breaks.count);
  equations.breaks.values(time, x, env, found);
  return found.reduce((least, each) => (each > time && each < least ? each : least), Infinity);
}

// Samples signals from the rows of a run, at times that are asked for and, where `sides` says so,
// on both sides of what jumps; and finds what ends the run.
function newRecorder(asked, signals, env, ending) {
  const reader = signalReader(signals);
  const held = Float64Array.from(env); // the values with which steps are repeated
  const n = Math.max(equations.states, 1);
  const m = equations.discrete;
  const { times } = asked;
  const repeaters = {};
  const values = new Float64Array(Math.max(reader.size, 1));
  const one = new Float64Array(1);
  const kept = { times: [], values: [], beside: [] };
  const events = [];
  const watches = equations.witnesses.directions.map(() => new Float64Array(WATCH_SIZE));
  const present = { time: asked.t0, limit: asked.t0, x: new Float64Array(n) };
  let next = 0;

  function keep(time, instant, x, beside) {
    reader.read(instant, x, held, values);
    kept.times.push(time);
    for (let i = 0; i < reader.size; i++) kept.values.push(values[i]);
    kept.beside.push(beside);
  }

  function keepPresent() {
    if (asked.sides && present.limit !== present.time) {
      keep(present.time, present.limit, present.x, true);
      keep(present.time, present.time, present.x, true);
    }
    while (next < times.length && times[next] <= present.time) keep(times[next++], present.time, present.x, false);
  }

  // The states inside of a step that begins with the present values.
  function keepInside(name, begin, end, clip, until) {
    let last = next;
    while (last < times.length && times[last] < until) last++;
    if (last === next) return;
    repeaters[name] ??= newMemory(name, asked, held);
    const count = last - next;
    const states = new Float64Array(count * n);
    const inside = times.subarray(next, last);
    const span = Float64Array.of(begin, end, clip);
    const before = Float64Array.from(held.subarray(0, m));
    const { resample } = loops[name];
    resample(repeaters[name], 1, span, 0, present.x, 0, before, 0, [count], 0, inside, 0, states, 0);
    for (let k = 0; k < count; k++) keep(times[next++], times[next - 1], states.subarray(k * n, (k + 1) * n), false);
  }

  function verdict(trigger, number, time, x) {
    for (const each of ending) {
      if (each.trigger === trigger && each.number === number) {
        each.values(time, x, held, one);
        if (one[0] !== 0) return { outcome: "terminated", message: each.reason };
      }
    }
    return null;
  }

  // An event of a witness function: note it, and tell whether it ends the run.
  function note(number, time, x) {
    const due = equations.events.filter((each) => each.trigger === "witness" && each.number === number);
    due.forEach(({ path }) => events.push({ time, path }));
    const found = verdict("witness", number, time, x);
    if (found === null && piles_up(watches[number], 0, time, false)) {
      const what = quoted(due.map(({ path }) => `'${path}'`));
      const message = `Cannot advance '${info.name}' past t = ${time}: the events ${what} follow each other `
        + "closer and closer. Let the update end the motion when it becomes small, or give a relay some hysteresis";
      return { outcome: "failed", message };
    }
    return found;
  }

  const bits = (mask, count) => [...Array(count).keys()].filter((k) => Math.floor(mask / 2 ** k) % 2 === 1);

  return {
    events,
    present,
    begin(x) {
      present.x.set(x);
      held.set(env.subarray(0, m));
      const due = equations.clocks.map((_, k) => k).filter((k) => isDue(k, asked.t0));
      let found = verdict("initialization", -1, asked.t0, present.x) ?? verdict("step", -1, asked.t0, present.x);
      for (const k of due) found ??= verdict("clock", k, asked.t0, present.x);
      return found;
    },
    // Read the rows of a run; return what ends it, if something does.
    take(name, run) {
      const { rows } = run;
      const used = rows.used;
      rows.used = 0;
      for (let r = 0; r < used; r++) {
        const row = rows.table.subarray(r * rows.width, (r + 1) * rows.width);
        const kind = rows.kinds[2 * r];
        const time = row[TIME];
        const x = row.subarray(STATE, STATE + n);
        const end = row[END];
        const clip = end === run.jump ? nextafter$(end, -Infinity) : Infinity;
        let found = null;
        if (kind === CHANGE) {
          if (time > present.time) {
            keepPresent(); // after a stop that was too close to move
            while (next < times.length && times[next] < time) keep(times[next], times[next++], present.x, false);
          }
          if (asked.sides) keep(present.time, present.limit, present.x, true);
          held.set(row.subarray(rows.discrete, rows.discrete + m));
          present.x.set(x);
          present.time = present.limit = time;
          if (asked.sides) keep(time, time, present.x, true);
        } else if (kind === STEP) {
          keepPresent();
          keepInside(name, row[BEGIN], end, clip, time);
          present.x.set(x);
          present.time = time;
          present.limit = Math.min(time, clip);
          found = verdict("step", -1, time, present.x);
        } else if (kind === CROSSING) {
          for (const k of bits(rows.kinds[2 * r + 1], run.witnesses.count)) found ??= note(k, time, present.x);
        } else if (kind === SAMPLE) {
          for (const k of bits(rows.kinds[2 * r + 1], run.clocks.count)) found ??= verdict("clock", k, time, x);
          if (found !== null && time !== present.time) {
            keepPresent();
            keepInside(name, row[BEGIN], end, clip, time);
            present.x.set(x);
            present.time = present.limit = time;
          }
        }
        if (found !== null) return found;
      }
      return null;
    },
    // What was sampled, with those beside jumps unless these are more than the others.
    finish() {
      keepPresent();
      if (asked.sides && kept.times.at(-1) !== present.time) keep(present.time, present.time, present.x, false);
      const crowded = kept.beside.filter((each) => each).length > Math.max(times.length, 100);
      const wanted = [...kept.times.keys()].filter((k) => !(crowded && kept.beside[k]));
      const sampled = {};
      signals.forEach((path, s) => {
        const size = (reader.starts[s + 1] ?? reader.size) - reader.starts[s];
        const column = new Float64Array(wanted.length * size);
        wanted.forEach((k, row) => {
          for (let i = 0; i < size; i++) column[row * size + i] = kept.values[k * reader.size + reader.starts[s] + i];
        });
        sampled[path] = column;
      });
      return { time: Float64Array.from(wanted, (k) => kept.times[k]), signals: sampled };
    },
  };
}

// Which pending update gives no finite numbers, in words.
function badUpdate({ step, system, updates }, changing) {
  const bad = changing.find(({ values, targets }, e) => {
    if (updates.pending[e] === 1) values(step.time, step.x, system.env, updates.results);
    return updates.pending[e] === 1 && !updates.results.subarray(0, targets.length).every(Number.isFinite);
  });
  return bad && `the update '${bad.path}' gives no finite numbers at t = ${step.time}`;
}

// Why a loop could not go on, in words; null where it can, after a stop that is too close to move.
function doubt(run, changing) {
  const { step, system, motion, witnesses } = run;
  const { n, env } = system;
  const at = `at t = ${step.time}`;
  const name = (i) => `'${info.states[i]?.path ?? i}'`;
  const bad = (values, count) => Array.from(values.subarray(0, count)).findIndex((each) => !Number.isFinite(each));
  if (motion.moving === 0) {
    const update = badUpdate(run, changing);
    if (update !== undefined) return update;
    if (!(motion.stop - step.time > 4 * spacing(step.time))) {
      if (motion.changed === 1) add_row(run, CHANGE, 0, step.time, step.x, 0);
      motion.changed = 0;
      step.time = step.time_old = step.time_new = motion.stop;
      finish_motion(run);
      return null;
    }
    const rates = new Float64Array(n);
    system.rhs(Math.min(step.time, step.clip), step.x, env, rates);
    if (bad(rates, n) >= 0) return `the time derivative of the state ${name(bad(rates, n))} is not finite ${at}`;
    const signs = new Float64Array(Math.max(witnesses.count, 1));
    witnesses.values(step.time, step.x, env, signs);
    return `the witness function of ${witnessed(bad(signs, witnesses.count))} is not finite ${at}`;
  }
  if (motion.verdict === DOUBTFUL) {
    const rates = step.k.subarray(0, n);
    let fastest = 0;
    for (let i = 1; i < n; i++) {
      const speed = (k) => Math.abs(rates[k]) / (run.tolerances.atol[k] + run.tolerances.rtol[k] * Math.abs(step.x[k]));
      if (!(speed(i) <= speed(fastest))) fastest = i;
    }
    return `no step is short enough ${at}: the equations are not finite or not smooth there; the state `
      + `${name(fastest)} moves fastest (value ${step.x[fastest]}, rate ${rates[fastest]})`;
  }
  const which = [...Array(witnesses.count).keys()].map(witnessed);
  return `the events of ${quoted(which)} cannot be told ${at}: a function varies too fast, is not finite, `
    + "or moves on where its update has brought it. Take smaller tolerances, maxStep or maxCheckInterval";
}

function witnessed(number) {
  const found = equations.events.find((each) => each.trigger === "witness" && each.number === number);
  return `'${found?.path ?? number}'`;
}

function simulate(options = {}) {
  const asked = checkedRun(options);
  checkNumbers(options);
  const { time, x, env } = startingValues(options);
  const signals = options.signals ?? info.signals.map((each) => each.path);
  const initialized = initialize(time, x, env);
  const mayChange = asked.method === "auto" && equations.jacobian !== null && equations.states > 0;
  const isStiff = mayChange && asked.tFinal - time > stiffFrom;
  let name = asked.method === "auto" ? NONSTIFF_METHOD : asked.method;
  if (isStiff) name = STIFF_METHOD;
  let run = newMemory(name, asked, env);
  const { changing, ending, stepping } = describeEvents(run, asked);
  run.stiffness.watching = mayChange && !isStiff ? 1 : 0;
  run.step.x.set(x);
  run.step.time = run.step.time_old = run.step.time_new = time;
  run.boundary = asked.tFinal;
  run.jump = nextBreak(time, x, env);
  const methods = [{ time, method: name }];
  changing.forEach(({ trigger, number }, e) => {
    if (trigger === "clock" && isDue(number, time)) run.updates.pending[e] = 1;
  });
  const recorder = newRecorder(asked, signals, env, ending);
  let end = recorder.begin(run.step.x);
  if (end === null && time === asked.tFinal) end = { outcome: "completed", message: "" };
  let left = asked.budget;
  while (end === null) {
    const { step, motion, counts } = run;
    if (stepping.length && motion.moving === 0) {
      for (const e of stepping) run.updates.pending[e] = 1;
      find_ticks(run.clocks, step.time);
      run.boundary = next_stop(run.clocks, 0, asked.tFinal);
    }
    run.budget = stepping.length ? 1 : left;
    const before = counts.steps;
    const status = loops[name].advance(run);
    left -= Math.max(1, counts.steps - before);
    end = recorder.take(name, run);
    if (end !== null) break;
    const fail = (message) => ({ outcome: "failed", message: `Cannot simulate '${info.name}': ${message}` });
    if (status === DOUBTFUL) {
      const why = doubt(run, changing);
      if (why !== null) end = fail(why);
    } else if (status === SLOW) {
      end = fail(`at the pace of the steps before t = ${step.time}, more than ${asked.budget} would be needed`);
    }
    if (end === null && motion.moving === 0 && step.time >= asked.tFinal) {
      end = { outcome: "completed", message: "" };
    } else if (end === null && left <= 0) {
      end = fail(`more than ${asked.budget} steps, up to t = ${step.time}`);
    }
    if (end !== null) break;
    if (motion.moving === 0 && step.time === run.jump) run.jump = nextBreak(step.time, step.x, env);
    if (status === STIFF) {
      name = STIFF_METHOD;
      methods.push({ time: step.time, method: name });
      run = withOtherMethod(run, newMemory(name, asked, env));
    } else if (stepping.length && motion.moving === 1 && motion.unpublished === 0) {
      for (const e of stepping) run.updates.pending[e] = 1;
      if (!update(run, UNRESTRICTED) || !update(run, DISCRETE)) end = fail(badUpdate(run, changing));
      else if (motion.changed === 1) finish_motion(run);
    }
  }
  const { counts } = run;
  return {
    ...end,
    ...recorder.finish(),
    events: recorder.events,
    state: Float64Array.from(recorder.present.x.subarray(0, equations.states)),
    statistics: {
      methods,
      ...{ steps: counts.steps, rejected: counts.rejected, restarts: counts.restarts },
      ...{ evaluations: counts.evaluations, jacobians: counts.jacobians, factorizations: counts.factorizations },
      updates: initialized + counts.discrete_updates + counts.unrestricted_updates,
    },
  };
}

// The memory of a method that carries on where another one has ended a motion.
function withOtherMethod(run, other) {
  for (const part of ["clocks", "updates", "witnesses", "rows", "pace", "counts"]) other[part] = run[part];
  other.boundary = run.boundary;
  other.jump = run.jump;
  other.motion.changed = run.motion.changed;
  other.step.x.set(run.step.x);
  other.step.time = other.step.time_old = other.step.time_new = run.step.time;
  return other;
}
