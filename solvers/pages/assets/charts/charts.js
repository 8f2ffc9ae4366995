// Charts of signals over time: panels one below the other that share their times, drawn by plotly.

const SERIES = 6; // colors, --series-1 and so on
const PANEL = 150; // height of what is inside of the axes
const GAP = 10; // below a panel
const GLANCE = 84; // height of the foremost panel beside sliders
const MARGIN = { l: 58, r: 14, t: 0, b: 24 };
const OPTIONS = { displayModeBar: false, responsive: false, doubleClick: "reset" };

/** Put panels of the shown signals into an element. */
function mountCharts(place, data, app) {
  const panels = data.charts.map((names) => ({ names: [...names] }));
  const canvas = element("div", { class: "canvas" });
  const cursors = element("div", { class: "cursors", "aria-hidden": "true" });
  const legends = element("div", { class: "legends" });
  const figure = element("div", { class: "charts", role: "group", "aria-label": "Charts" });
  figure.append(canvas, cursors, legends);
  place.append(figure, element("p", { class: "axis" }, "time [s]"), makePicker(app));
  let drawn = null; // what the canvas shows: {live: indices of lines, kept, keptSeen}
  let span = []; // of times, when it was drawn last
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
      panel.legend = makeLegend(panel, app);
      panel.cursor ??= element("div", { class: "cursor" });
    }
    legends.replaceChildren(...panels.map((panel) => panel.legend));
    cursors.replaceChildren(...panels.map((panel) => panel.cursor));
    drawn = null;
    redraw();
  }

  /** Draw everything anew. */
  function redraw() {
    width = figure.clientWidth;
    if (width === 0) return; // nobody sees it
    moveCursor(); // which fills the legends, before they are measured
    const height = stack(panels);
    canvas.style.height = `${height}px`;
    if (typeof Plotly === "undefined") {
      canvas.replaceChildren(sketch(panels, width, height, app));
      return moveCursor();
    }
    const lines = panels.flatMap((panel, k) => linesOf(panel, k, app));
    const keptSeen = app.kept !== app.result;
    const layout = layoutOf(panels, height, zoom(), app);
    if (drawn !== null) Plotly.react(canvas, lines, layout, OPTIONS);
    else {
      canvas.replaceChildren();
      Plotly.newPlot(canvas, lines, layout, OPTIONS); // forgets all axes that are no longer there
      canvas.on("plotly_relayout", moveCursor);
      canvas.on("plotly_click", (event) => app.seek(event.points[0].x));
    }
    const live = lines.map((line, i) => (line.meta === "live" ? i : -1)).filter((i) => i >= 0);
    drawn = { live, kept: app.kept, keptSeen };
    span = app.span();
    describePanels();
    moveCursor();
  }

  /** Return the range of times that somebody has zoomed into, if so. */
  function zoom() {
    const range = canvas.layout?.xaxis?.range;
    const [first, last] = span;
    return range && (range[0] !== first || range[1] !== last) ? [...range] : null;
  }

  /** Draw a new result; only lines that can have moved. */
  function update() {
    const [first, last] = app.span();
    const same = drawn && drawn.kept === app.kept && drawn.keptSeen === (app.kept !== app.result);
    if (!same || span[0] !== first || span[1] !== last) return redraw();
    const names = panels.flatMap((panel) => panel.names);
    const points = names.map((name) => pointsOf(name, app.result, app));
    Plotly.restyle(canvas, { x: points.map(([x]) => x), y: points.map(([, y]) => y) }, drawn.live);
    describePanels();
    moveCursor();
  }

  function describePanels() {
    for (const panel of panels) panel.legend.setAttribute("aria-label", describe(panel.names, app));
  }

  function moveCursor() {
    const [first, last] = canvas.layout?.xaxis?.range ?? app.span();
    const share = (app.time - first) / (last - first);
    cursors.hidden = !(share >= 0 && share <= 1);
    cursors.style.transform = `translateX(${MARGIN.l + share * (width - MARGIN.l - MARGIN.r)}px)`;
    for (const { readings } of panels) {
      for (const [name, node] of readings) {
        const now = componentNow(name, app);
        node.textContent = now === null ? "" : format(now);
      }
    }
  }

  app.on("library", redraw);
  app.on("shown", arrange);
  app.on("result", update);
  app.on("time", moveCursor);
  app.on("colors", redraw);
  new ResizeObserver(() => figure.clientWidth !== width && redraw()).observe(figure);
  arrange();
  return () => panels[0] ?? null;
}

/** Lay panels below their legends, and return how high all of it is. */
function stack(panels) {
  let top = 0;
  for (const panel of panels) {
    panel.legend.style.top = `${top}px`;
    top += panel.legend.offsetHeight + 4;
    panel.top = top;
    Object.assign(panel.cursor.style, { top: `${top}px`, height: `${PANEL}px` });
    top += PANEL + GAP;
  }
  return top - GAP + MARGIN.b;
}

/** Draw lines without axes: what people see until the library is there that draws charts. */
function sketch(panels, width, height, app, { l, r } = MARGIN, tall = PANEL) {
  const [first, last] = app.span();
  const made = svgElement("svg", { width, height, "aria-hidden": "true" });
  for (const { names, styles, top } of panels) {
    const lines = names.map((name) => pointsOf(name, app.result, app));
    let [least, greatest] = [Infinity, -Infinity];
    for (const value of lines.flatMap(([, y]) => Array.from(y).filter(Number.isFinite))) {
      least = Math.min(least, value);
      greatest = Math.max(greatest, value);
    }
    const [middle, half] = [(least + greatest) / 2, 0.555 * (greatest - least) || 1];
    const scale = (width - l - r) / (last - first || 1);
    const across = (t) => l + (t - first) * scale;
    const down = (value) => top + (tall / 2) * (1 - (value - middle) / half);
    for (const [i, [x, y]] of lines.entries()) {
      const place = (value, k) =>
        Number.isFinite(value) ? `${across(x[k]).toFixed(1)},${down(value).toFixed(1)}` : "";
      const points = Array.from(y, place).join(" ");
      const { color, width: thick, dash } = styles[i];
      const style = { stroke: `var(${color})`, strokeWidth: thick, fill: "none" };
      if (dash !== "solid") style.strokeDasharray = dash;
      made.append(svgElement("polyline", { points, style }));
    }
  }
  return made;
}

/** Keep the foremost panel in sight, small, where charts scroll away from the sliders. */
function mountGlance(place, foremost, app) {
  const picture = element("div", { class: "glance", "aria-hidden": "true" });
  place.prepend(picture);
  function draw() {
    const [width, panel] = [picture.clientWidth, foremost()];
    if (width === 0 || panel === null) return; // nobody sees it
    const items = panel.names.map((name, k) =>
      element("span", { style: { color: `var(${panel.styles[k].color})` } }, name),
    );
    const lines = sketch([{ ...panel, top: 0 }], width, GLANCE, app, { l: 14, r: 14 }, GLANCE);
    picture.replaceChildren(lines, element("p", {}, items));
  }
  app.on("shown", draw);
  app.on("result", draw);
  new ResizeObserver(draw).observe(picture);
}

/** How signals of a panel look: setpoints dashed and quiet, others in the order of colors. */
function stylesOf(names, data) {
  const setpoints = new Set(data.responses.map((response) => response.setpoint));
  let next = 0;
  return names.map((name) =>
    setpoints.has(name) && names.length > 1
      ? { color: "--quiet", dash: "5px,4px", width: 1.5 }
      : { color: `--series-${(next++ % SERIES) + 1}`, dash: "solid", width: 2 },
  );
}

/** Return the lines of a panel: each signal as it is now, below that as it was in the run kept. */
function linesOf({ names, styles }, k, app) {
  const keptSeen = app.kept !== app.result;
  const axis = k === 0 ? "y" : `y${k + 1}`;
  const each = (make) =>
    names.map((name, i) => make(name, styles[i], app.signals.get(pathOf(name))));
  const line = (name, result, style) => {
    const [x, y] = pointsOf(name, result, app);
    return { x, y, type: "scatter", mode: "lines", name, yaxis: axis, ...style };
  };
  const kept = each((name, { color }, { held }) =>
    line(name, keptSeen ? app.kept : null, {
      line: { color: token(color), width: 1.2, dash: "dot", shape: held ? "hv" : "linear" },
      meta: "kept",
      opacity: 0.7,
      hoverinfo: "skip",
      visible: keptSeen,
    }),
  );
  const live = each((name, { color, dash, width }, { held, unit }) =>
    line(name, app.result, {
      line: { color: token(color), width, dash, shape: held ? "hv" : "linear", simplify: false },
      meta: "live",
      hovertemplate: `%{y:.5~g} ${escaped(unitText(unit))}<extra></extra>`,
    }),
  );
  return [...kept, ...live];
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

function layoutOf(panels, height, zoomed, app) {
  const inner = height - MARGIN.t - MARGIN.b;
  const axis = chartAxis();
  const layout = {
    ...chartLayout(MARGIN, height),
    hoversubplots: "axis",
    xaxis: {
      ...axis,
      range: zoomed ?? app.span(),
      autorange: false,
      anchor: panels.length > 1 ? `y${panels.length}` : "y",
    },
  };
  for (const [k, { top }] of panels.entries()) {
    layout[k === 0 ? "yaxis" : `yaxis${k + 1}`] = {
      ...axis,
      domain: [1 - (top + PANEL) / inner, 1 - top / inner].map((share) => clamped(share, [0, 1])),
      fixedrange: true,
      nticks: 5,
    };
  }
  return layout;
}

/** List the signals of a panel with their color, the value at the cursor, and a way out. */
function makeLegend(panel, app) {
  panel.readings = panel.names.map((name) => [name, element("b")]);
  const items = panel.readings.map(([name, number], k) => {
    const signal = app.signals.get(pathOf(name));
    const { color, dash } = panel.styles[k];
    const look = dash === "solid" ? "swatch" : "swatch dashed";
    return element(
      "li",
      { title: [name, signal.doc].filter(Boolean).join("\n") },
      element("span", { class: look, style: { color: `var(${color})` }, "aria-hidden": "true" }),
      element("span", { class: "name" }, signal.relative ? `change of ${name}` : name),
      element(
        "output",
        { class: "reading" },
        number,
        element("span", { class: "unit" }, ` ${unitText(signal.unit)}`),
      ),
      element(
        "button",
        {
          type: "button",
          class: "out",
          "aria-label": `Hide ${name}`,
          onclick: () => app.hide(name),
        },
        "×",
      ),
    );
  });
  return element("ul", { class: "legend" }, items);
}

function describe(names, app) {
  const parts = names.map((name) => {
    const signal = app.signals.get(pathOf(name));
    const row = app.rowOf(name);
    if (row === null) return name;
    let [least, greatest] = [row[0], row[0]];
    for (const value of row) {
      least = Math.min(least, value);
      greatest = Math.max(greatest, value);
    }
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
