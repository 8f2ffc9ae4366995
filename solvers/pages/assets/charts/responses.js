// The figures of responses as tiles: now, and how far that is from the run that was kept.

const TILES = [
  ["rise_time", "rise time", "s"],
  ["settling_time", "settling time", "s"],
  ["overshoot", "overshoot", "%"],
  ["peak", "peak", "U"], // in the unit of the signal
  ["steady_state_error", "steady-state error", "U"],
  ["iae", "IAE", "U s"],
];
const ABOUT = {
  rise_time: "From 10 % to 90 % of the change",
  settling_time: "After which the response stays within 2 % of the change around its final value",
  overshoot: "How far the response goes beyond its final value, in percent of the change",
  peak: "The value farthest from the first one in the direction of the step",
  steady_state_error: "The target minus the last value",
  iae: "The integral of the magnitude of the error",
};

/** Put a group of tiles for each response into an element. */
function mountResponses(place, data, app) {
  for (const response of data.responses) {
    const unit = unitText(app.signals.get(pathOf(response.signal)).unit);
    const tiles = TILES.map(([key, title, own]) => makeTile(key, title, own.replace("U", unit)));
    const note = element("p", { class: "note" });
    const list = element("dl", { class: "tiles" }, tiles.map((tile) => tile.box));
    place.append(element("h3", {}, response.signal), list, note);
    const update = () => {
      const [now, before] = [app.result, app.kept].map((result) => measured(response, result, app));
      note.textContent = remark(now);
      list.hidden = Boolean(now?.several || now?.refused);
      for (const tile of tiles) tile.update(now?.[tile.key] ?? NaN, before?.[tile.key] ?? NaN);
    };
    for (const topic of ["result", "runs"]) app.on(topic, update);
    app.need([response.signal, response.setpoint].filter(Boolean).map(pathOf));
  }
}

function makeTile(key, title, unit) {
  const value = element("span", { class: "value" });
  const own = element("span", { class: "unit" }, unit.trim());
  const change = element("span", { class: "change" });
  const box = element(
    "div",
    { class: "tile", title: ABOUT[key], data: { figure: key } },
    element("dt", {}, title),
    element("dd", {}, value, own, change),
  );
  function update(now, before) {
    value.textContent = format(now);
    box.dataset.number = String(now);
    own.hidden = !Number.isFinite(now);
    const moved = Number.isFinite(now) && Number.isFinite(before) && format(now) !== format(before);
    change.textContent = moved ? `was ${format(before)}` : "";
  }
  return { key, box, update };
}

const figuresKept = new WeakMap(); // by result, then by the name of the signal

/** Return the figures of a response in a result, or null where there is nothing to measure. */
function measured(response, result, app) {
  if (!result) return null;
  if (!figuresKept.has(result)) figuresKept.set(result, new Map());
  const own = figuresKept.get(result);
  if (!own.has(response.signal)) own.set(response.signal, measuredNow(response, result, app));
  return own.get(response.signal);
}

function measuredNow({ signal, setpoint, sources }, result, app) {
  if (result.figures) return recordedFigures(result.figures[signal]);
  const dense = result.dense;
  if (!dense) return null;
  const values = app.rowOf(signal, dense);
  if (values === null) return null;
  const breaks = result.breaks.filter((event) => sources.includes(event.path));
  const times = [...new Set(breaks.map((event) => event.time))];
  const end = result.time[result.time.length - 1];
  const within = times.filter((time) => time >= result.time[0] && time < end);
  if (within.length > 1) return { several: within };
  const at = within[0] ?? result.time[0];
  const target = setpoint ? targetAt(setpoint, dense, at, app) : NaN;
  return stepInfo({ ...dense, values }, { at, target });
}

/** Return figures that Python has measured, where null is what is lacking. */
function recordedFigures(figures) {
  return Object.fromEntries(Object.entries(figures).map(([key, each]) => [key, each ?? NaN]));
}

/** Return the setpoint right after a time, unless it moves later on. */
function targetAt(setpoint, dense, at, app) {
  const values = app.rowOf(setpoint, dense);
  if (values === null) return NaN;
  const arcs = from(arcsOf({ ...dense, values }), at);
  const first = arcs[0].y0;
  return arcs.every(({ y0, y1 }) => y0 === first && y1 === first) ? first : NaN;
}

function remark(figures) {
  if (figures === null) return "Nothing was recorded that could be measured.";
  if (figures.refused) return figures.refused;
  if (figures.several) {
    const times = figures.several.map((time) => format(time)).join(", ");
    return `Sources jump at ${times} s: no single step to measure.`;
  }
  if (Number.isNaN(figures.final)) {
    return "Still moving at the end: metrics that need the final value are omitted.";
  }
  if (Number.isNaN(figures.settling_time)) return "Not yet settled at the end of the run.";
  return "";
}
