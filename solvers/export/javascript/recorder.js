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
  const watches = Array.from({ length: equations.witnesses.count }, () => room(WATCH_SIZE));
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
