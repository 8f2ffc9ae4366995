// One chart of curves over an axis, drawn by plotly, with its legend and the fields of its range.

const SERIES = 6; // colors, --series-1 and so on
const OPTIONS = { displayModeBar: false, responsive: false, doubleClick: false };
const MARGIN = { l: 58, r: 12, t: 6, b: 26 };

/** Return the colors of the curves of a chart: ink for the whole, colors for its terms. */
function colorsOf({ curves, kind }) {
  let next = 0;
  const whole = kind === "energy" ? "--accent" : "--ink";
  return curves.map(({ look }) =>
    look === "total" ? whole : look === "other" ? "--quiet" : `--series-${(next++ % SERIES) + 1}`,
  );
}

/** Make a chart in a section of its own; `frame` tells and changes ranges, and where one looks. */
function makePlot(chart, axis, frame) {
  const colors = colorsOf(chart);
  const readings = chart.curves.map(() => element("b"));
  const items = chart.curves.map((curve, c) =>
    element(
      "li",
      {},
      element("span", {
        class: curve.look === "other" ? "swatch dashed" : "swatch",
        style: { color: `var(${colors[c]})` },
        "aria-hidden": "true",
      }),
      element("span", { class: "name" }, curve.name),
      curve.look === "other" ? null : element("output", { class: "reading" }, readings[c], " ", element("span", { class: "unit" }, unitText(chart.unit))),
    ),
  );
  const canvas = element("div", { class: "canvas" });
  const note = element("p", { class: "note" });
  const ends = ["from", "to"].map((name, k) =>
    element("input", {
      type: "text",
      class: "end",
      inputmode: "decimal",
      autocomplete: "off",
      "aria-label": `${chart.title}: ${name}`,
      onchange: (event) => {
        const span = [...frame.range(chart.axis)];
        span[k] = parse(event.target.value);
        if (Number.isFinite(span[k]) && span[0] < span[1]) frame.setRange(chart.axis, span);
        else {
          tell("A range goes from a number to a greater one");
          showRange();
        }
      },
    }),
  );
  const axisLine = element(
    "p",
    { class: "axis" },
    element("span", {}, `${axis.name}${axis.unit ? ` [${unitText(axis.unit)}]` : ""}`),
    element("span", { class: "ends" }, "from ", ends[0], " to ", ends[1]),
  );
  const id = `chart-${makePlot.count++}`;
  const section = element(
    "section",
    { class: `chart ${chart.kind}`, "aria-labelledby": id, data: { title: chart.title } },
    element("h2", { id }, chart.title, chart.unit ? element("span", { class: "unit" }, ` [${unitText(chart.unit)}]`) : null),
    element("ul", { class: "legend" }, items),
    canvas,
    axisLine,
    note,
  );
  let [drawn, waiting] = [null, null]; // what the chart shows, and what it has still to show
  let seen = true; // until somebody knows
  new IntersectionObserver((changes) => {
    seen = changes.at(-1).isIntersecting;
    if (seen) catchUp();
  }).observe(canvas);

  function showRange() {
    frame.range(chart.axis).forEach((end, k) => {
      if (document.activeElement !== ends[k]) ends[k].value = format(end, 5);
    });
  }

  /** Show {now, kept, at, heights, points, bottoms}; kept, points and bottoms may be null. */
  function draw(wanted) {
    const { now, heights, bottoms } = wanted;
    showRange();
    heights.forEach((height, c) => (readings[c].textContent = format(height)));
    note.textContent = bottoms ? wellText(bottoms, axis) : "";
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", described(chart, now));
    const all = { ...wanted, ink: token("--ink"), range: [...frame.range(chart.axis)] };
    waiting = drawn !== null && alike(all, drawn) ? null : all;
  }

  /** Tell whether the chart is seen, and not as it is wanted. */
  const isLate = () => seen && waiting !== null; // others are drawn when they come into sight

  /** Draw the chart as it is wanted, if it is not drawn so. */
  function catchUp() {
    if (waiting === null) return;
    const { now, kept, at, heights, points, bottoms, range } = waiting;
    const hover = `%{y:.5~g} ${escaped(unitText(chart.unit))}<extra>%{fullData.name}</extra>`;
    const line = (x, y, name, look) => ({ x, y, name: escaped(name), type: "scatter", mode: "lines", ...look });
    const traces = [];
    if (points) {
      traces.push({
        ...points,
        name: "measured",
        type: "scatter",
        mode: "markers",
        marker: { color: token("--measured"), size: 5 },
        hoverinfo: "skip",
      });
    }
    const hasWhole = chart.curves.some(({ look }) => look === "total");
    chart.curves.forEach((curve, c) => {
      if (!kept || (curve.look !== "total" && hasWhole)) return;
      const look = { line: { color: token(colors[c]), width: 1.2, dash: "dot" }, opacity: 0.75, hoverinfo: "skip" };
      traces.push(line(kept.x, kept.rows[c], curve.name, look));
    });
    const order = chart.curves.map((_, c) => c).sort((a, b) => (chart.curves[a].look === "total") - (chart.curves[b].look === "total"));
    for (const c of order) {
      const curve = chart.curves[c];
      const width = curve.look === "total" ? 2.4 : curve.look === "other" ? 1.2 : 1.7;
      const fill = chart.kind === "energy" ? { fill: "tozeroy", fillcolor: token("--well") } : {};
      traces.push(
        line(now.x, now.rows[c], curve.name, {
          line: { color: token(colors[c]), width, dash: curve.look === "other" ? "6px,4px" : "solid", simplify: false },
          hovertemplate: hover,
          hoverinfo: curve.look === "other" ? "skip" : undefined,
          ...fill,
        }),
      );
    }
    if (bottoms?.length) {
      traces.push({
        x: bottoms.map((each) => each.x),
        y: bottoms.map((each) => each.y),
        type: "scatter",
        mode: "markers",
        marker: { color: token("--card"), size: 9, line: { color: token("--accent"), width: 2 } },
        hoverinfo: "skip",
      });
    }
    const seen = chart.curves.map((_, c) => c).filter((c) => chart.curves[c].look !== "other");
    const marked = hasWhole ? seen.filter((c) => chart.curves[c].look === "total") : seen;
    traces.push({
      x: marked.map(() => at),
      y: marked.map((c) => heights[c]),
      type: "scatter",
      mode: "markers",
      marker: {
        color: marked.map((c) => token(chart.kind === "energy" ? "--series-2" : colors[c])),
        size: chart.kind === "energy" ? 14 : 9,
        line: { color: token("--card"), width: 1.5 },
      },
      hoverinfo: "skip",
      cliponaxis: false,
    });
    const inside = at >= range[0] && at <= range[1];
    const layout = layoutOf(range, canvas.clientHeight, inside ? at : null);
    if (drawn !== null) Plotly.react(canvas, traces, layout, OPTIONS);
    else {
      Plotly.newPlot(canvas, traces, layout, OPTIONS);
      canvas.on("plotly_relayout", (change) => {
        const [first, last] = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
        if (Number.isFinite(first) && first < last) frame.setRange(chart.axis, [first, last]);
      });
      canvas.on("plotly_doubleclick", () => frame.setRange(chart.axis, axis.span));
      canvas.on("plotly_click", (event) => frame.look(chart.axis, event.points[0].x));
    }
    [drawn, waiting] = [waiting, null];
  }
  return { section, draw, isLate, catchUp, chart, resize: () => drawn !== null && Plotly.Plots.resize(canvas) };
}
makePlot.count = 0;

/** Tell whether plain data is the same in every number. */
function alike(some, others) {
  if (Object.is(some, others)) return true;
  if (Array.isArray(some) && Array.isArray(others)) {
    return some.length === others.length && some.every((each, k) => alike(each, others[k]));
  }
  if (typeof some !== "object" || typeof others !== "object" || !some || !others) return false;
  const names = Object.keys(some);
  return names.length === Object.keys(others).length && names.every((name) => alike(some[name], others[name]));
}

function wellText(bottoms, { unit }) {
  if (bottoms.length === 0) return "No well inside of this range.";
  const placed = ({ x, from, to }) => (to > from ? `${format(from, 3)} to ${format(to, 3)}` : format(x));
  const shown = bottoms.slice(0, 6).map(placed);
  const where = `${shown.join(", ")}${bottoms.length > 6 ? " …" : ""} ${unitText(unit)}`.trimEnd();
  return bottoms.length === 1 ? `At rest in the well at ${where}.` : `Wells at ${where}.`;
}

function described(chart, { x, rows }) {
  const parts = chart.curves.map((curve, c) => {
    const row = rows[c].filter(Number.isFinite);
    const [least, greatest] = row.length ? [Math.min(...row), Math.max(...row)] : [NaN, NaN];
    return `${curve.name} between ${format(least)} and ${format(greatest)}`;
  });
  return `${chart.title} from ${format(x[0])} to ${format(x.at(-1))}: ${parts.join("; ")} ${chart.unit}`.trimEnd();
}

function layoutOf(range, height, at) {
  const axis = chartAxis();
  const cursor = { type: "line", x0: at, x1: at, y0: 0, y1: 1, yref: "paper", line: { color: token("--quiet"), width: 1, dash: "dot" } };
  return {
    ...chartLayout(MARGIN, height),
    shapes: at === null ? [] : [cursor],
    xaxis: { ...axis, range: [...range], autorange: false },
    yaxis: { ...axis, autorange: true, fixedrange: true, nticks: 6 },
  };
}
