// What is kept of a run: signals at the times that are asked for, events, and what ends the run.
// It reads the rows that the loops write, and needs what `run_memory.js` needs and gives.

function newRecorder(asked, signals, env) {
  const reader = signalReader(signals);
  const held = Float64Array.from(env); // with the discrete values that hold at present
  const n = Math.max(equations.states, 1);
  const m = equations.discrete;
  const { times } = asked;
  const ends = ending();
  const repeaters = {}; // memory in which steps are repeated, by method
  const values = room(reader.size);
  const verdict = room(1);
  const kept = { times: [], values: [], beside: [] };
  const events = [];
  const watches = equations.witnesses.directions.map(() => room(WATCH_SIZE));
  // Where the reading has come to. Signals are evaluated at the limit before equations jump.
  const present = { time: asked.t0, limit: asked.t0, x: room(n) };
  let next = 0; // of the times

  function keep(time, instant, x, beside) {
    reader.read(instant, x, held, values);
    kept.times.push(time);
    for (let i = 0; i < reader.size; i++) kept.values.push(values[i]);
    kept.beside.push(beside);
  }

  // Sample the present, up to which nothing happens any more.
  function keepPresent() {
    const { time, limit, x } = present;
    if (asked.sides && limit !== time) {
      keep(time, limit, x, true);
      keep(time, time, x, true);
    }
    while (next < times.length && times[next] <= time) keep(times[next++], time, x, false);
  }

  // Sample the times before one at which nothing has moved yet.
  function keepStill(end) {
    keepPresent();
    for (; next < times.length && times[next] < end; next++) {
      keep(times[next], times[next], present.x, false);
    }
  }

  // Sample the times before one inside of a step that begins with the present values.
  function keepInside(name, begin, end, clip, until) {
    keepPresent();
    let last = next;
    while (last < times.length && times[last] < until) last++;
    const count = last - next;
    if (count === 0) return;
    repeaters[name] ??= newMemory(name, asked, held);
    const inside = times.subarray(next, last);
    const states = room(count * n);
    const span = Float64Array.of(begin, end, clip);
    const before = held.slice(0, m);
    const { resample } = loops[name];
    const step = [1, span, 0, present.x, 0, before, 0, [count], 0];
    resample(repeaters[name], ...step, inside, 0, states, 0);
    for (let k = 0; k < count; k++, next++) {
      keep(times[next], times[next], states.subarray(k * n, (k + 1) * n), false);
    }
  }

  function move(time, x, limit = time) {
    present.x.set(x);
    present.time = time;
    present.limit = limit;
  }

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

  function readRow(name, run, kind, mask, row) {
    const time = row[TIME];
    const x = row.subarray(STATE, STATE + n);
    const end = row[END];
    const clip = row[CLIP];
    let found = null;
    if (kind === CHANGE) {
      if (time > present.time) keepStill(time); // after a stop that was too close to move
      if (asked.sides) keep(present.time, present.limit, present.x, true);
      held.set(row.subarray(run.rows.discrete, run.rows.discrete + m));
      move(time, x);
      if (asked.sides) keep(time, time, present.x, true);
    } else if (kind === STEP) {
      keepInside(name, row[BEGIN], end, clip, time);
      move(time, x, Math.min(time, clip));
      found = verdictOf("step", -1, time, present.x);
    } else if (kind === CROSSING) {
      for (const k of bitsOf(mask)) found ??= note(k, time, present.x);
    } else if (kind === SAMPLE) {
      for (const k of bitsOf(mask)) found ??= verdictOf("clock", k, time, x);
      if (found !== null && time !== present.time) {
        keepInside(name, row[BEGIN], end, clip, time);
        move(time, x);
      }
    }
    return found;
  }

  return {
    events,
    present,
    // Begin with the values behind initialization; return what ends the run at once.
    begin(x, due) {
      present.x.set(x);
      held.set(env.subarray(0, m));
      let found = verdictOf("initialization", -1, asked.t0, x);
      found ??= verdictOf("step", -1, asked.t0, x);
      for (const clock of due) found ??= verdictOf("clock", clock, asked.t0, x);
      return found;
    },
    // Read the rows of a run; return what ends it, if something does.
    take(name, run) {
      const { kinds, table, width, used } = run.rows;
      run.rows.used = 0;
      for (let r = 0; r < used; r++) {
        const row = table.subarray(r * width, (r + 1) * width);
        const found = readRow(name, run, kinds[2 * r], kinds[2 * r + 1], row);
        if (found !== null) return found;
      }
      return null;
    },
    // What was sampled; what stands beside jumps is left out where it is more than all else.
    finish() {
      const { time, x } = present;
      keepPresent();
      if (asked.sides && kept.times.at(-1) !== time) keep(time, time, x, false);
      const crowded = kept.beside.filter(Boolean).length > Math.max(times.length, 100);
      const wanted = [...kept.times.keys()].filter((k) => !(crowded && kept.beside[k]));
      const sampled = signals.map((path, s) => {
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
        signals: Object.fromEntries(sampled), // which may be called __proto__
      };
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
