// Runs of a model: what is asked for, what is done between the calls of a loop, and what is told.
// It needs the loops of `model_text.py`, and what `recorder.js` needs and gives.

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
