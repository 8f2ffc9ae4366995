// Charts of signals over time: panels one below the other that share their times and their zoom.

const PANEL = 150; // height of what is inside of the axes
const GLANCE = 84; // height of the foremost panel beside sliders
const MARGIN = { l: 58, r: 14, t: 4, b: 6 };
const FOOT = 24; // below the last panel, where times are written
const BELOW = { width: 1.2, opacity: 0.8, quiet: true }; // the look of other runs

/** Put panels of the shown signals into an element. */
function mountCharts(place, data, app, model) {
  const panels = data.charts.map((names) => ({ names: [...names] }));
  const figure = element("div", {
    class: "charts",
    role: "group",
    tabindex: 0,
    "aria-label": "Charts. Arrows move the cursor, plus and minus zoom, Escape shows all.",
    onkeydown: (event) => byKey(event, app),
  });
  const scope = element("div", { class: "scope" });
  place.append(figure, element("p", { class: "axis" }, "time [s]"), makePicker(app), scope);
  let width = 0;

  /** Give every shown signal a panel: that of its unit, or one of its own. */
  function arrange() {
    const isShown = (name) => app.shown.includes(name);
    for (const panel of panels) panel.names = panel.names.filter(isShown);
    const there = new Set(panels.flatMap((panel) => panel.names));
    const unitOf = (name) => app.signals.get(pathOf(name)).unit;
    for (const name of app.shown.filter((each) => !there.has(each))) {
      const unit = unitOf(name);
      const home = unit && panels.find(({ names }) => names.some((each) => unitOf(each) === unit));
      if (home) home.names.push(name);
      else panels.push({ names: [name] });
    }
    panels.splice(0, panels.length, ...panels.filter((panel) => panel.names.length > 0));
    for (const panel of panels) {
      panel.styles = stylesOf(panel.names, data);
      panel.chart ??= makeChart({
        zoom: (range) => app.zoom(range),
        reset: () => app.zoom(null),
        press: (time) => app.seek(time),
        move: (name, time) => app.mark(name === "a" ? 0 : 1, time),
        hover: (time) => panels.forEach(({ chart }) => chart.point(time)),
      });
      panel.box ??= element("div", { class: "panel", role: "group" });
      panel.box.replaceChildren(makeLegend(panel, app, draw), panel.chart.face);
    }
    figure.replaceChildren(...panels.map(({ box }) => box));
    draw();
  }

  function draw() {
    if (width === 0) return; // nobody sees it
    for (const panel of panels) {
      const isLast = panel === panels[panels.length - 1];
      panel.chart.draw({
        width,
        height: PANEL + MARGIN.t + (isLast ? FOOT : MARGIN.b),
        margin: isLast ? { ...MARGIN, b: FOOT } : MARGIN,
        x: { range: app.seen(), labels: isLast },
        y: { logarithmic: panel.logarithmic },
        lines: linesOf(panel, app),
      });
      panel.box.setAttribute("aria-label", describe(panel.names, app));
    }
    moveCursor();
  }

  function moveCursor() {
    for (const { chart, readings } of panels) {
      chart.rule("cursor", app.time);
      ["a", "b"].forEach((name, k) => chart.rule(name, app.marks?.[k] ?? null));
      for (const [name, node] of readings) {
        const now = componentNow(name, app);
        node.textContent = now === null ? "" : format(now);
      }
    }
  }

  app.on("shown", arrange);
  for (const topic of ["result", "zoom", "runs"]) app.on(topic, draw);
  for (const topic of ["time", "marks"]) app.on(topic, moveCursor);
  arrange();
  followWidth(figure, (now) => {
    width = now;
    draw();
  });
  mountScope(scope, data, app, model);
  return () => panels[0] ?? null;
}

/** Call a function with the width of an element, now and whenever it is another one. */
function followWidth(node, call) {
  let width = 0;
  const look = () => node.clientWidth !== width && call((width = node.clientWidth));
  new ResizeObserver(look).observe(node);
  look();
}

/** Move the cursor and zoom by keys. */
function byKey(event, app) {
  const [first, last] = app.seen();
  const step = (last - first) / 100;
  const around = (share) => {
    const at = clamped(app.time, [first, last]);
    app.zoom([at - share * (at - first), at + share * (last - at)]);
  };
  const acts = {
    ArrowLeft: () => app.seek(app.time - step),
    ArrowRight: () => app.seek(app.time + step),
    "+": () => around(0.5),
    "-": () => around(2),
    Escape: () => app.zoom(null),
  };
  if (event.target !== event.currentTarget || !Object.hasOwn(acts, event.key)) return;
  event.preventDefault();
  acts[event.key]();
}

/** Keep the foremost panel in sight, small, where charts scroll away from the sliders. */
function mountGlance(place, foremost, app) {
  const names = element("p");
  const chart = makeChart();
  const picture = element("div", { class: "glance", "aria-hidden": "true" }, chart.face, names);
  place.prepend(picture);
  let width = 0;
  function draw() {
    const panel = foremost();
    if (width === 0 || panel === null) return; // nobody sees it
    const margin = { l: 14, r: 14, t: 2, b: 2 };
    const x = { range: app.seen(), labels: false };
    const lines = linesOf(panel, app);
    chart.draw({ width, height: GLANCE, margin, x, y: { labels: false }, lines });
    names.replaceChildren(
      ...panel.names.map((name, k) =>
        element("span", { style: { color: `var(${panel.styles[k].color})` } }, name),
      ),
    );
  }
  for (const topic of ["shown", "result", "zoom"]) app.on(topic, draw);
  followWidth(picture, (now) => {
    width = now;
    draw();
  });
}

/** How signals of a panel look: setpoints dashed and quiet, others in the order of colors. */
function stylesOf(names, data) {
  const setpoints = new Set(data.responses.map((response) => response.setpoint));
  let next = 0;
  return names.map((name) =>
    setpoints.has(name) && names.length > 1
      ? { color: "--quiet", dash: "5 4", width: 1.5 }
      : { color: `--series-${(next++ % SERIES) + 1}`, width: 2 },
  );
}

/** Return the lines of a panel: each signal as it is now, below that as it was in other runs. */
function linesOf({ names, styles }, app) {
  const line = (name, k, result, look) => {
    const [x, y] = pointsOf(name, result, app);
    const { held, unit } = app.signals.get(pathOf(name));
    return { name, x, y, held, unit, ...styles[k], ...look };
  };
  const seen = [...names.keys()].filter((k) => !app.hidden.has(names[k]));
  return [
    ...app.overlays().flatMap(({ run, dash }) =>
      seen.map((k) => line(names[k], k, run.result, { ...BELOW, dash })),
    ),
    ...seen.map((k) => line(names[k], k, app.result, {})),
  ];
}

/** Return the look of the only signal of a chart, in the present run or in one with dashes. */
function runLook(dash) {
  return { color: "--series-1", width: 1.8, dash, ...(dash === undefined ? {} : BELOW) };
}

/** Return times and values of a signal in a result, as they are shown. */
function pointsOf(name, result, app) {
  const row = app.rowOf(name, result);
  return row === null ? [[], []] : [result.time, row];
}

function componentNow(name, app) {
  const signal = app.signals.get(pathOf(name));
  const [now, c] = [app.at(signal.path), componentAt(name, signal)];
  if (now === null) return null;
  const shown = asShown(signal, app.result.signals[signal.path][c]);
  return shown === null ? now[c] : shown(now[c]);
}

/** List the signals of a panel with their look, the value at the cursor, and a way out. */
function makeLegend(panel, app, draw) {
  panel.readings = panel.names.map((name) => [name, element("b")]);
  const items = panel.readings.map(([name, number], k) => {
    const signal = app.signals.get(pathOf(name));
    const toggle = () => {
      app.hidden.delete(name) || app.hidden.add(name);
      app.changed("shown");
    };
    const about = {
      name: signal.relative ? `change of ${name}` : name,
      title: [name, signal.doc].filter(Boolean).join("\n"),
      isHidden: app.hidden.has(name),
      toggle,
      ...panel.styles[k],
    };
    const unit = element("span", { class: "unit" }, ` ${unitText(signal.unit)}`);
    const out = { type: "button", class: "out", "aria-label": `Hide ${name}`, onclick: () => app.hide(name) };
    return legendItem(about, element("output", { class: "reading" }, number, unit), element("button", out, "×"));
  });
  const scale = element(
    "button",
    {
      type: "button",
      class: "scale",
      title: "Logarithmic axis",
      "aria-label": `Logarithmic axis of ${panel.names[0]}`,
      "aria-pressed": String(Boolean(panel.logarithmic)),
      onclick: () => {
        panel.logarithmic = !panel.logarithmic;
        scale.setAttribute("aria-pressed", String(panel.logarithmic));
        draw();
      },
    },
    "log",
  );
  return element("ul", { class: "legend" }, items, element("li", { class: "last" }, scale));
}

function describe(names, app) {
  const parts = names.map((name) => {
    const signal = app.signals.get(pathOf(name));
    const row = app.rowOf(name);
    if (row === null) return name;
    const [least, greatest] = [OF_SIGNALS.least(row), OF_SIGNALS.greatest(row)];
    const [first, last] = [row[0], row[row.length - 1]].map((value) => format(value));
    const range = `between ${format(least)} and ${format(greatest)} ${signal.unit}`;
    return `${name} from ${first} to ${last}, ${range}`;
  });
  return `Chart over time: ${parts.join("; ")}`;
}

/** Make the field in which people look for further signals to show. */
function makePicker(app) {
  const names = [...app.signals.values()].flatMap(componentsOf);
  const field = element("input", {
    list: "signals",
    type: "text",
    id: "picker",
    placeholder: "Add a signal…",
    "aria-label": "Add a signal to the charts",
    autocomplete: "off",
    onchange: () => {
      const name = field.value.trim();
      if (names.includes(name)) app.show(name);
      else if (name) tell(`There is no signal ${name}`);
      field.value = "";
    },
  });
  const options = names.map((name) => element("option", { value: name }));
  const list = element("datalist", { id: "signals" }, options);
  return element("div", { class: "picker" }, field, list);
}
