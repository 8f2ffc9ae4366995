// The page's one store, which all views share: what is asked (values), what came of it (result),
// and where we look (time). Views read it, ask it for changes, and hear of changes of others.
//
//   app.info      what `flexureModel().info` says: states, parameters, inputs, signals, events
//   app.values    {parameters: {path: [numbers]}, initial: {path: [numbers]},
//                  inputs: {path: [numbers]}, tFinal: number}, all of them; read only
//   app.result    what the last run gave, or null before the first one:
//                 {outcome, message, time, signals: {path: Float64Array}, events: [{time, path}],
//                  breaks: [{time, path}], statistics, dense, figures}; of what is measured, dense
//                 holds the polynomials, {begin, end, signals}, and on a page of recorded signals
//                 figures what Python has measured; signals lie one sample after the other,
//                 `size` numbers in each; where something jumps, a time is there twice
//   app.time      the cursor's time in seconds
//   app.playing   whether it moves
//   app.shown     which signals the charts show, such as ["door.axis.angle", "plant.x[1]"]
//   app.hidden    of these, whose curves are left out for a while
//   app.selected  the path of the block, port or parameter that all views point at, or null
//   app.live      false on a page of recorded signals, whose values cannot be changed
//
//   app.goals     bounds of figures, see `goals.js`
//   app.runs      what has been run, see `runs.js`; app.current and app.reference are of them
//
//   app.set(kind, path, numbers)  change a value and run: kind is "parameters", "initial", "inputs";
//                                 a fourth argument tells that more changes will follow at once
//   app.settle()                  tell that they have all come
//   app.setFinalTime(seconds)
//   app.reset()                   back to the values that the page came with
//   app.seek(time)                move the cursor
//   app.play(), app.pause()
//   app.show(signal), app.hide(signal)   in the charts
//   app.zoom(range)               show a part of the times in all charts, or all of them for null
//   app.measure(isOn)             put the cursors A and B into charts, at app.marks, or take them away
//   app.mark(k, time)             move one of them
//   app.seen()                    the first and the last time that charts show
//   app.select(path)
//   app.need([paths])             signals that results hold from now on; runs if they do not yet
//   app.at(path, time)            components of a signal at a time (the cursor's when omitted), as
//                                 an array; after a jump, at its instant; null when it is not there
//   app.rowOf(name, result)       what charts show of a signal at all times of a result, in the unit
//                                 that people see; null when it is not there
//   app.on(topic, listener)       listener() is called after a change; returns what ends that.
//                                 Topics: "values", "result", "time", "playing", "shown",
//                                 "selected", "zoom", "marks", "runs", "goals", "colors". "time" comes with each frame of an
//                                 animation, "colors" when light becomes dark.
//
// Files of this folder are joined, in the order that `document.py` lists, inside of one strict
// function: what a file declares at its top is seen by all, and nothing is global. Elements are
// made by `element("div", {class: "panel", onclick: f}, "text", child)` of `elements.js`, where
// text stays text; there is no innerHTML. Numbers are written by `format(number)`, and colors,
// sizes and fonts are the custom properties of `colors.css` (`var(--ink)`), for light and dark.
//
// A view is a function that is called once, with an empty element of the page, the data that
// Python has prepared for it, and this store: `mountDiagram(element, data, app)`,
// `mountMechanism(element, data, app)`. It draws from app.result when there is one, and
// whenever "result" or "time" come.

let known = new Map(); // the signals of the page by path, of which names can have brackets, too

/** Make the store from what Python has written, and from what the model says of itself, if any. */
function makeApp(data, info) {
  const listeners = new Map();
  const rows = new WeakMap(); // what `rowOf` has found, by result
  const signals = new Map(data.signals.map((signal) => [signal.path, signal]));
  known = signals;
  const start = startingValues(data, info);
  const app = {
    info,
    start,
    signals,
    values: copied(start),
    result: null,
    goals: data.goals ?? [],
    gesture: 0, // counts what hands do: what moves without a stop is one
    moving: false, // whether a slider does
    time: 0,
    playing: false,
    shown: data.charts.flat(),
    hidden: new Set(),
    zoomed: null, // the times that somebody wants to see
    marks: null, // the times of the cursors A and B
    selected: null,
    live: info !== null,
    needed: new Set(),

    on(topic, listener) {
      if (!listeners.has(topic)) listeners.set(topic, new Set());
      listeners.get(topic).add(listener);
      return () => listeners.get(topic).delete(listener);
    },
    changed(topic) {
      for (const listener of [...(listeners.get(topic) ?? [])]) listener();
    },
    set: (kind, path, numbers, isMoving = false) =>
      app.setMany(kind, { [path]: typeof numbers === "number" ? [numbers] : Array.from(numbers) }, isMoving),
    setMany(kind, numbersByPath, isMoving = false) {
      if (!isMoving || !app.moving) app.gesture++;
      app.moving = isMoving;
      app.values = { ...app.values, [kind]: { ...app.values[kind], ...numbersByPath } };
      app.changed("values");
    },
    settle() {
      app.moving = false;
      app.changed("runs");
    },
    setFinalTime(seconds) {
      app.gesture++;
      app.values = { ...app.values, tFinal: seconds };
      app.changed("values");
    },
    restore(values) {
      app.gesture++;
      app.values = copied(values);
      app.changed("values");
    },
    reset: () => app.restore(start),
    finish(result, values = app.values, gesture = app.gesture) {
      app.result = result;
      app.record(result, values, gesture);
      app.time = clamped(app.time, app.span());
      app.marks = app.marks?.map((time) => clamped(time, app.span())) ?? null;
      app.changed("result");
    },
    get kept() {
      return app.reference?.result ?? null;
    },
    span() {
      const time = app.result?.time;
      return time?.length ? [time[0], time[time.length - 1]] : [data.start, app.values.tFinal];
    },
    zoom(range) {
      const [first, last] = app.span();
      const inside = range?.map((time) => clamped(time, [first, last])) ?? [first, last];
      const isPart = inside[0] < inside[1] && (inside[0] > first || inside[1] < last);
      app.zoomed = isPart ? inside : null;
      app.changed("zoom");
    },
    measure(isOn) {
      const [first, last] = app.seen();
      app.marks = isOn ? [0.25, 0.75].map((share) => first + share * (last - first)) : null;
      app.changed("marks");
    },
    mark(k, time) {
      app.marks = app.marks.with(k, clamped(time, app.span()));
      app.changed("marks");
    },
    seen() {
      const [first, last] = app.span();
      const [begin, end] = app.zoomed ?? [first, last];
      return begin < last && end > first ? [begin, Math.min(end, last)] : [first, last];
    },
    seek(time) {
      app.time = clamped(time, app.span());
      app.changed("time");
    },
    play: () => move(true),
    pause: () => move(false),
    show(signal) {
      if (app.shown.includes(signal) || !signals.has(pathOf(signal))) return;
      app.shown = [...app.shown, signal];
      app.need([pathOf(signal)]);
      app.changed("shown");
    },
    hide(signal) {
      app.shown = app.shown.filter((each) => each !== signal);
      app.changed("shown");
    },
    select(path) {
      app.selected = path;
      app.changed("selected");
    },
    need(paths) {
      const fresh = paths.filter((path) => signals.has(path) && !app.needed.has(path));
      for (const path of fresh) app.needed.add(path);
      if (fresh.some((path) => app.result && !app.result.signals[path])) app.changed("needed");
    },
    rowOf(name, result = app.result) {
      if (!result) return null;
      if (!rows.has(result)) rows.set(result, new Map());
      const own = rows.get(result);
      if (!own.has(name)) own.set(name, app.freshRow(name, result));
      return own.get(name);
    },
    freshRow(name, result) {
      const signal = signals.get(pathOf(name));
      const values = result.signals[signal.path];
      if (!values?.length) return null;
      const row = component(values, signal.size, componentAt(name, signal));
      const shown = asShown(signal, row[0]);
      return shown === null ? row : row.map(shown);
    },
    at(path, time = app.time) {
      const values = app.result?.signals[path];
      return values ? interpolated(app.result.time, values, signals.get(path), time) : null;
    },
  };
  function move(playing) {
    if (app.playing === playing) return;
    app.playing = playing;
    app.changed("playing");
  }
  keepRuns(app);
  app.need([...app.shown, ...app.goals.map(({ signal }) => signal)].map(pathOf));
  return app;
}

/** Return the values that the page came with, each as an array. */
function startingValues(data, info) {
  const unknown = (item) => new Array(item.labels.length || 1).fill(NaN); // nobody has fixed it
  const listed = (items, key) =>
    Object.fromEntries(items.map((item) => [item.path, [item[key] ?? unknown(item)].flat()]));
  return {
    parameters: listed(info?.parameters ?? [], "value"),
    initial: listed([...(info?.states ?? []), ...(info?.discrete ?? [])], "initial"),
    inputs: listed(info?.inputs ?? [], "value"),
    tFinal: data.tFinal,
  };
}

function copied({ parameters, initial, inputs, tFinal }) {
  return { parameters: { ...parameters }, initial: { ...initial }, inputs: { ...inputs }, tFinal };
}

/** Return the path of a signal without the component: "plant.x[1]" is of "plant.x". */
function pathOf(signal) {
  let path = signal;
  while (path && !known.has(path)) path = path.slice(0, Math.max(path.lastIndexOf("["), 0));
  return path || signal;
}

/** Return the names of the components of a signal; one that has a single one is called as it is. */
function componentsOf(signal) {
  if (signal.size === 1) return [signal.path];
  return signal.labels.map((label) => `${signal.path}[${label}]`);
}

/** Return one component of a signal at all times. */
function component(values, size, c) {
  if (size === 1) return values;
  return Float64Array.from({ length: values.length / size }, (_, i) => values[i * size + c]);
}

/** Return the function from numbers of a signal that begins with `first` to those that people see,
 * null where they are the same. */
function asShown({ scale, relative }, first) {
  if (scale === 1 && !relative) return null;
  return (value) => scale * (relative ? value - first : value);
}

/** Return which component of its signal a name means, by its label or its number. */
function componentAt(name, signal) {
  if (name === signal.path) return 0;
  const label = name.slice(signal.path.length + 1, -1);
  const place = signal.labels.map(String).indexOf(label);
  return place < 0 ? Number(label) : place;
}

/** Return the components of a signal at a time, linear between samples; held if it is sampled. */
function interpolated(times, values, { size, held }, time) {
  const k = placeOf(times, time);
  const next = Math.min(k + 1, times.length - 1);
  const width = times[next] - times[k];
  const share = held || !(width > 0) ? 0 : clamped((time - times[k]) / width, [0, 1]);
  return Array.from({ length: size }, (_, c) => {
    const before = values[k * size + c];
    return share === 0 ? before : before + share * (values[next * size + c] - before);
  });
}
