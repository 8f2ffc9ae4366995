// Charts of signals over time, in panels that share their times, drawn by plotly.

const SERIES = 6; // colors, --series-1 and so on
const MARGIN = { l: 62, r: 14, t: 10, b: 26 };
const LAST_MARGIN = { ...MARGIN, b: 42 };

/** Put panels of the shown signals into an element. */
function mountCharts(place, data, app) {
  let panels = data.charts.map((group) => makePanel([...group]));
  const list = element("div", { class: "panels" });
  place.append(list, makePicker(app));

  function makePanel(names) {
    const canvas = element("div", { class: "canvas" });
    const cursor = element("div", { class: "cursor", "aria-hidden": "true" });
    const legend = element("ul", { class: "legend" });
    const plot = element("div", { class: "plot", role: "img" }, canvas, cursor);
    return { names, canvas, cursor, legend, plot, box: element("figure", {}, legend, plot) };
  }

  function arrange() {
    for (const panel of panels) panel.names = panel.names.filter((name) => app.shown.includes(name));
    const there = new Set(panels.flatMap((panel) => panel.names));
    for (const name of app.shown.filter((each) => !there.has(each))) {
      const unit = app.signals.get(pathOf(name)).unit;
      const fits = (panel) => panel.names.some((each) => app.signals.get(pathOf(each)).unit === unit);
      const home = unit === "" ? undefined : panels.find(fits);
      if (home) home.names.push(name);
      else panels.push(makePanel([name]));
    }
    panels = panels.filter((panel) => panel.names.length > 0);
    list.replaceChildren(...panels.map((panel) => panel.box));
    for (const panel of panels) fillLegend(panel, app);
    draw(true);
  }

  function draw(anew) {
    for (const [k, panel] of panels.entries()) drawPanel(panel, app, k === panels.length - 1, anew);
    moveCursor();
  }

  function moveCursor() {
    for (const panel of panels) {
      placeCursor(panel, app.time);
      for (const [name, node] of panel.readings) {
        const now = componentNow(name, app);
        node.textContent = now === null ? "" : format(now);
      }
    }
  }

  function shareRange(panel, change) {
    if (shareRange.busy) return;
    const touched = Object.keys(change).some((key) => key.startsWith("xaxis."));
    if (!touched) return;
    shareRange.busy = true;
    const range = change["xaxis.autorange"] ? app.span() : [...panel.canvas.layout.xaxis.range];
    for (const other of panels) {
      if (other !== panel || change["xaxis.autorange"]) {
        Plotly.relayout(other.canvas, { "xaxis.range": range, "xaxis.autorange": false });
      }
      other.zoomed = !change["xaxis.autorange"];
    }
    shareRange.busy = false;
    moveCursor();
  }

  function drawPanel(panel, app, last, anew) {
    const series = panel.names.flatMap((name, k) => seriesOf(name, k, app));
    const keeps = !anew && panel.drawn && panel.last === last;
    if (keeps && panel.count === series.length) {
      panel.plot.setAttribute("aria-label", describe(panel, app));
      Plotly.restyle(panel.canvas, { x: series.map((s) => s.x), y: series.map((s) => s.y) });
      const range = panel.canvas.layout.xaxis.range;
      const [first, end] = app.span();
      if (!panel.zoomed && (range[0] !== first || range[1] !== end)) {
        Plotly.relayout(panel.canvas, { "xaxis.range": [first, end] });
      }
      return;
    }
    panel.canvas.style.height = last ? "208px" : "192px";
    const layout = layoutOf(panel, app, last);
    Plotly.react(panel.canvas, series, layout, OPTIONS);
    if (!panel.drawn) {
      panel.canvas.on("plotly_relayout", (change) => shareRange(panel, change));
      panel.canvas.on("plotly_click", (event) => app.seek(event.points[0].x));
    }
    Object.assign(panel, { drawn: true, last, count: series.length });
    panel.plot.setAttribute("aria-label", describe(panel, app));
  }

  app.on("shown", arrange);
  app.on("result", () => draw(false));
  app.on("time", moveCursor);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw(true));
  let width = 0;
  new ResizeObserver(() => {
    if (list.clientWidth === width) return;
    width = list.clientWidth;
    for (const panel of panels) if (panel.drawn) Plotly.Plots.resize(panel.canvas);
    moveCursor();
  }).observe(list);
  arrange();
}

const OPTIONS = { displayModeBar: false, responsive: false, doubleClick: "reset" };

/** Return the lines of one signal: as it is now, and as it was in the run that was kept. */
function seriesOf(name, k, app) {
  const path = pathOf(name);
  const signal = app.signals.get(path);
  const c = componentAt(name, signal);
  const color = token(`--series-${(k % SERIES) + 1}`);
  const line = (result, style) => ({
    x: result?.time ?? [],
    y: result?.signals[path] ? component(result.signals[path], signal.size, c) : [],
    type: "scatter",
    mode: "lines",
    name,
    ...style,
  });
  const shape = signal.held ? "hv" : "linear";
  const kept = app.kept === app.result ? null : app.kept;
  return [
    line(kept, { line: { color, width: 1.2, dash: "dot", shape }, opacity: 0.65, hoverinfo: "skip" }),
    line(app.result, {
      line: { color, width: 2, shape },
      hovertemplate: `%{y:.5~g}${signal.unit ? ` ${escaped(unitText(signal.unit))}` : ""}<extra></extra>`,
    }),
  ];
}

function escaped(text) {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/%/g, "&#37;");
}

function component(values, size, c) {
  if (size === 1) return values;
  return Float64Array.from({ length: values.length / size }, (_, i) => values[i * size + c]);
}

function componentNow(name, app) {
  const now = app.at(pathOf(name));
  return now === null ? null : now[componentAt(name, app.signals.get(pathOf(name)))];
}

function layoutOf(panel, app, last) {
  const units = [...new Set(panel.names.map((name) => app.signals.get(pathOf(name)).unit))];
  const unit = units.find(Boolean) ?? "";
  const ink = token("--quiet");
  const axis = {
    gridcolor: token("--grid"),
    zerolinecolor: token("--line"),
    linecolor: token("--line"),
    tickfont: { size: 11.5 },
    showline: true,
    ticks: "outside",
    tickcolor: token("--line"),
    ticklen: 4,
  };
  const title = (text) => ({ text: escaped(text), font: { size: 12 }, standoff: 6 });
  return {
    margin: last ? LAST_MARGIN : MARGIN,
    height: last ? 208 : 192,
    autosize: true,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, color: ink },
    showlegend: false,
    hovermode: "x",
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    hoverlabel: { font: { size: 12 }, bgcolor: token("--card"), bordercolor: token("--line") },
    xaxis: {
      ...axis,
      range: panel.zoomed ? panel.canvas.layout.xaxis.range : app.span(),
      autorange: false,
      title: last ? title("time [s]") : undefined,
    },
    yaxis: { ...axis, title: title(unit ? `[${unitText(unit)}]` : ""), fixedrange: true },
    uirevision: "same",
  };
}

/** Put the cursor where a time is, and hide it where that is outside of the panel. */
function placeCursor(panel, time) {
  if (!panel.drawn) return;
  const [first, last] = panel.canvas.layout.xaxis.range;
  const share = (time - first) / (last - first);
  const width = panel.canvas.clientWidth - MARGIN.l - MARGIN.r;
  panel.cursor.hidden = !(share >= 0 && share <= 1);
  panel.cursor.style.transform = `translateX(${MARGIN.l + share * width}px)`;
  panel.cursor.style.bottom = `${(panel.last ? LAST_MARGIN : MARGIN).b}px`;
}

/** List the signals of a panel with their color, the value at the cursor, and a way out. */
function fillLegend(panel, app) {
  panel.readings = panel.names.map((name) => [name, element("output", { class: "reading" })]);
  const items = panel.readings.map(([name, reading], k) => {
    const signal = app.signals.get(pathOf(name));
    const color = `var(--series-${(k % SERIES) + 1})`;
    return element(
      "li",
      { title: [name, signal.doc].filter(Boolean).join("\n") },
      element("span", { class: "swatch", style: { background: color }, "aria-hidden": "true" }),
      element("span", { class: "name" }, name),
      reading,
      element("span", { class: "unit" }, unitText(signal.unit)),
      element(
        "button",
        { type: "button", class: "out", "aria-label": `Hide ${name}`, onclick: () => app.hide(name) },
        "×",
      ),
    );
  });
  panel.legend.replaceChildren(...items);
}

function describe(panel, app) {
  const parts = panel.names.map((name) => {
    const signal = app.signals.get(pathOf(name));
    const values = app.result?.signals[signal.path];
    if (!values?.length) return name;
    const row = component(values, signal.size, componentAt(name, signal));
    let [least, greatest] = [Infinity, -Infinity];
    for (const value of row) [least, greatest] = [Math.min(least, value), Math.max(greatest, value)];
    const ends = [row[0], row[row.length - 1], least, greatest].map((value) => format(value));
    return `${name} from ${ends[0]} to ${ends[1]}, between ${ends[2]} and ${ends[3]} ${signal.unit}`;
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
  return element("div", { class: "picker" }, field, element("datalist", { id: "signals" }, options));
}
