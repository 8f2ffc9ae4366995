// The page of a block without states: constants move its curves, and a point on them is weighed.

const data = JSON.parse(document.getElementById("data").textContent);
const model = flexureModel();
const app = makeApp(data, model.info);
const ZERO = 1e-12; // part of the largest number below which a chart is zero but for rounding
const curves = makeCurves(model, data);
const ranges = data.axes.map((axis) => [...axis.span]);
let view = data.views[0];
let plots = [];
let kept = app.values;
let time = data.axes.find((axis) => axis.path === null)?.value ?? data.start;

const frame = {
  range: (k) => ranges[k],
  setRange(k, span) {
    ranges[k] = [...span];
    draw();
  },
  look(k, place) {
    const axis = data.axes[k];
    if (axis.path === null) {
      time = place;
      return draw();
    }
    const numbers = [...app.values.inputs[axis.path]];
    numbers[axis.component] = place;
    app.set("inputs", axis.path, numbers);
  },
};

/** Return where one looks on an axis. */
function lookedAt({ path, component }) {
  return path === null ? time : app.values.inputs[path][component];
}

const settingOf = ({ parameters, inputs }) => ({ parameters, inputs, time });

/** Draw all charts anew, and weigh the terms. */
function draw() {
  const start = performance.now();
  const alert = document.getElementById("alert");
  try {
    drawAll();
    alert.hidden = true;
  } catch (error) {
    alert.textContent = `The curves cannot be drawn: ${error.message}`;
    alert.hidden = false;
  }
  performance.measure("answer", { start, end: performance.now() });
  document.body.dataset.runs = Number(document.body.dataset.runs ?? 0) + 1;
}

function drawAll() {
  const now = settingOf(app.values);
  const evaluate = curves.evaluator(now);
  const before = settingOf({ parameters: kept.parameters, inputs: app.values.inputs });
  const compares = Object.keys(now.parameters).some((path) => !same(now.parameters[path], kept.parameters[path]));
  let shown = null;
  for (const plot of plots) {
    const { chart } = plot;
    plot.sampled = curves.sampled(now, chart.curves, data.axes[chart.axis], ranges[chart.axis]);
  }
  const greatestOf = ({ rows }) => rows.flat().reduce((most, y) => Math.max(most, Math.abs(y)), 0);
  const greatest = Math.max(...plots.map(({ sampled }) => greatestOf(sampled)).filter(Number.isFinite));
  for (const plot of plots) {
    const { chart, sampled } = plot;
    const axis = data.axes[chart.axis];
    const range = ranges[chart.axis];
    const at = lookedAt(axis);
    const heights = evaluate(chart.curves, axis, at);
    plot.fold(pointsFor(chart) === null && greatestOf(sampled) <= ZERO * greatest);
    plot.draw({
      now: sampled,
      kept: compares ? curves.sampled(before, chart.curves, axis, range) : null,
      at,
      heights,
      points: pointsFor(chart),
      bottoms: chart.kind === "energy" ? wells(sampled.x, sampled.rows[0]) : null,
    });
    shown ??= { chart, heights };
  }
  weigh(shown);
}

/** Return the measured points that belong below a chart. */
function pointsFor(chart) {
  const { measured } = data;
  if (!measured || !["force", "signal"].includes(chart.kind) || view !== data.views[0]) return null;
  const place = data.axes[chart.axis].path === "velocity" ? measured.rate : measured.position;
  return place && new Set(place).size > 1 ? { x: place, y: measured.force } : null;
}

/** Show the parts of the first chart as bars, at the point that is looked at. */
function weigh({ chart, heights }) {
  const place = document.querySelector("#shares .view");
  const curvesShown = chart.curves.map((curve, c) => ({ ...curve, height: heights[c], c })).filter(({ look }) => look !== "other");
  document.getElementById("shares").hidden = curvesShown.length < 2;
  const greatest = Math.max(...curvesShown.map(({ height }) => Math.abs(height)).filter(Number.isFinite), 0);
  const colors = colorsOf(chart);
  const rows = curvesShown.map(({ name, height, look, c }) => {
    const share = greatest > 0 && Number.isFinite(height) ? (50 * height) / greatest : 0;
    const bar = element("span", {
      class: "bar",
      style: {
        left: `${Math.min(50, 50 + share)}%`,
        width: `${Math.abs(share)}%`,
        background: `var(${colors[c]})`,
      },
    });
    return element(
      "div",
      { class: look === "total" ? "share whole" : "share", data: { term: name, number: String(height) } },
      element("dt", {}, name),
      element("dd", {}, element("span", { class: "scale", "aria-hidden": "true" }, bar), element("span", { class: "amount" }, `${format(height)} `, element("span", { class: "unit" }, unitText(chart.unit)))),
    );
  });
  const where = view.axes.map((k) => data.axes[k]).map((axis) => `${axis.name} ${format(lookedAt(axis))} ${unitText(axis.unit)}`.trimEnd());
  place.replaceChildren(element("p", { class: "note" }, `At ${where.join(", ")}`), element("dl", { class: "shares" }, rows));
}

/** Show the charts of a view. */
function choose(chosen) {
  view = chosen;
  plots = view.charts.map((chart) => makePlot(chart, data.axes[chart.axis], frame));
  const home = document.getElementById("curves");
  home.replaceChildren(...plots.map((plot) => plot.section));
  home.classList.toggle("single", plots.length === 1);
  arrange();
  draw();
}

// Controls --------------------------------------------------------------------------------------

const controls = controlsOf({ foremost: [...data.parameters, "position", "velocity"] }, app);
const points = new Map(); // controls of axes, by their number
const constants = [];

function mountConstants() {
  const groups = new Map();
  for (const item of controls) {
    if (item.kind !== "parameters" || !data.parameters.includes(item.path)) continue;
    const group = item.path.includes(".") ? item.path.slice(0, item.path.lastIndexOf(".")) : "";
    const made = item.components.map((component) => makeControl(item, component, app));
    constants.push(...made);
    if (!groups.has(group)) groups.set(group, []);
    groups.get(group).push(...made.map((control) => control.row));
  }
  for (const [k, axis] of data.axes.entries()) {
    if (axis.path === null) continue;
    const item = controls.find((each) => each.kind === "inputs" && each.path === axis.path);
    const [least, greatest] = axis.span;
    const about = { k: axis.component, value: axis.value, name: axis.name, label: axis.name, lower: least, upper: greatest };
    points.set(k, makeControl({ ...item, unit: axis.unit, doc: "", exclusive: false }, about, app));
  }
  const titled = [...groups].length > 1;
  const place = document.querySelector("#values .view");
  place.append(
    ...[...groups].map(([title, rows]) =>
      element("fieldset", {}, titled ? element("legend", {}, title) : element("legend", { class: "aside" }, "Constants"), rows),
    ),
    element("fieldset", { id: "point" }, element("legend", {}, "Looked at")),
    element("details", { class: "rest", id: "held" }, element("summary", {}, "Held")),
  );
  if (constants.length === 0) place.prepend(element("p", { class: "note" }, "This block has no constants."));
}

/** Put the controls of the axes of the view at hand, others into a fold. */
function arrange() {
  const [near, far] = [document.getElementById("point"), document.getElementById("held")];
  for (const [k, { row }] of points) (view.axes.includes(k) ? near : far).append(row);
  near.hidden = near.querySelector(".control") === null;
  far.hidden = far.querySelector(".control") === null;
}

function mountChoice() {
  if (data.views.length === 1) return;
  const select = element(
    "select",
    { id: "swept", onchange: () => choose(data.views[Number(select.value)]) },
    data.views.map((each, k) => element("option", { value: k }, each.name)),
  );
  document.getElementById("choice").append(element("label", { for: "swept" }, "Over "), select);
}

// What leaves the page --------------------------------------------------------------------------

const INFINITY = (number) => `float("${number > 0 ? "" : "-"}inf")`;

function codeText() {
  const { code } = data;
  const infos = new Map(model.info.parameters.map((each) => [each.path, each]));
  const written = (path) => literal(nested(app.values.parameters[path], infos.get(path).shape), INFINITY);
  const changed = data.parameters.filter(
    (path) => code.changed.includes(path) || !same(app.values.parameters[path], app.start.parameters[path]),
  );
  const lines = [
    "import flexure as fx",
    "",
    `context = ${code.context}.create_default_context()`,
    ...changed.map((path) => `context.set(${JSON.stringify(code.names[path])}, ${written(path)})`),
  ];
  if (code.constructor) {
    const given = code.constructor.arguments.map(([keyword, kind, text]) => {
      const value = kind === "parameter" ? written(code.prefix + text) : text;
      return keyword === null ? value : `${keyword}=${value}`;
    });
    lines.push("", "# Or as a block of its own", `${code.block} = ${code.constructor.call}(`);
    lines.push(...given.map((each) => `    ${each},`), ")");
  }
  return [...lines, ""].join("\n");
}

function asTable() {
  const rows = plots.flatMap(({ chart, sampled }) =>
    chart.curves.flatMap((curve, c) =>
      sampled.x.map((x, i) => [chart.title, curve.name, x, sampled.rows[c][i]]),
    ),
  );
  return asRows([["chart", "curve", "at", "value"], ...rows]);
}

function mountButtons() {
  const button = (name, onclick) => element("button", { type: "button", onclick }, name);
  document.getElementById("sharing").append(
    button("Reset", () => {
      data.axes.forEach((axis, k) => (ranges[k] = [...axis.span]));
      app.reset();
    }),
    button("Compare from here", () => {
      kept = app.values;
      tell("Dotted curves show the constants of now");
      draw();
    }),
    button("Copy link", () => copyLink(linkOf(app))),
    button("Python", () => showText("These constants in Python", codeText())),
    button("CSV", () => download(`${data.name}.csv`, asTable(), "text/csv")),
  );
}

mountConstants();
mountChoice();
mountButtons();
followAddress(app);
const update = () => [...constants, ...points.values()].forEach((control) => control.update());
let waiting = false;
app.on("values", () => {
  update();
  if (waiting) return; // a drawing comes already, with the latest values
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    draw();
  });
});
update();

choose(view);
new ResizeObserver(() => plots.forEach((plot) => plot.paint())).observe(document.getElementById("curves"));
followColors(app);
document.body.dataset.drawn = "yes";
performance.mark("drawn");
