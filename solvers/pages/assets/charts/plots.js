// One chart of curves over an axis, with its legend and the fields of its range.

const MARGIN = { l: 58, r: 12, t: 6, b: 24 };

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
  const hidden = new Set();
  const list = element("ul", { class: "legend" });
  function showLegend() {
    const items = chart.curves.map((curve, c) => {
      const unit = element("span", { class: "unit" }, unitText(chart.unit));
      const toggle = () => {
        hidden.delete(c) || hidden.add(c);
        showLegend();
        paint();
      };
      const about = { name: curve.name, color: colors[c], dash: curve.look === "other", isHidden: hidden.has(c), toggle };
      return legendItem(about, curve.look === "other" ? [] : element("output", { class: "reading" }, readings[c], " ", unit));
    });
    list.replaceChildren(...items);
  }
  const drawing = makeChart({
    zoom: (range) => frame.setRange(chart.axis, range),
    reset: () => frame.setRange(chart.axis, axis.span),
    press: (place) => frame.look(chart.axis, place),
  });
  const canvas = element("div", { class: "canvas" }, drawing.face);
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
    element("p", { class: "zero-note" }, "Zero in this range"),
    list,
    canvas,
    axisLine,
    note,
  );
  let shown = null; // what the chart has been told to show
  let isSeen = true; // until somebody knows
  new IntersectionObserver((changes) => {
    isSeen = changes.at(-1).isIntersecting;
    paint();
  }).observe(canvas);
  showLegend();

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
    note.textContent = bottoms ? wellText(bottoms, axis, frame.range(chart.axis)) : "";
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", described(chart, now));
    shown = wanted;
    paint();
  }

  /** Show a chart that is zero everywhere as its title alone. */
  const fold = (isZero) => section.classList.toggle("zero", isZero);

  /** Draw the chart as it is wanted, where people see it. */
  function paint() {
    if (!isSeen || shown === null) return;
    const { now, kept, at, heights, points, bottoms } = shown;
    const hasWhole = chart.curves.some(({ look }) => look === "total");
    const isSpot = (c) => !hidden.has(c) && chart.curves[c].look !== "other" && (!hasWhole || chart.curves[c].look === "total");
    const line = (c, { x, rows }, look) => ({ name: chart.curves[c].name, label: chart.curves[c].name, unit: chart.unit, x, y: rows[c], color: colors[c], ...look });
    const ordered = [...chart.curves.keys()].filter((c) => !hidden.has(c));
    ordered.sort((a, b) => (chart.curves[a].look === "total") - (chart.curves[b].look === "total"));
    const before = kept ? ordered.filter((c) => !hasWhole || chart.curves[c].look === "total") : [];
    const energy = chart.kind === "energy" ? { fill: "--well" } : {};
    const looks = { total: { width: 2.4 }, other: { width: 1.2, dash: "6 4", quiet: true } };
    const spots = ordered.filter(isSpot);
    drawing.draw({
      width: canvas.clientWidth,
      height: canvas.clientHeight,
      margin: MARGIN,
      x: { range: frame.range(chart.axis) },
      y: {},
      lines: [
        ...before.map((c) => line(c, kept, { width: 1.2, dash: "1.5 3", opacity: 0.8, quiet: true })),
        ...ordered.map((c) => line(c, now, { width: 1.7, ...looks[chart.curves[c].look], ...energy })),
      ],
      points: [
        ...(points ? [{ ...points, color: "--measured", size: 5, name: "measured" }] : []),
        ...(bottoms ?? []).map(({ x, y }) => ({ x: [x], y: [y], color: "--card", ring: "--accent", size: 9 })),
        ...spots.map((c) => ({ x: [at], y: [heights[c]], color: chart.kind === "energy" ? "--series-2" : colors[c], ring: "--card", size: chart.kind === "energy" ? 14 : 10 })),
      ],
    });
    drawing.rule("cursor", at);
  }
  return { section, draw, fold, paint, chart };
}
makePlot.count = 0;

function wellText(bottoms, { unit }, [least, greatest]) {
  const isZero = (x) => Math.abs(x) < 1e-9 * (greatest - least);
  if (bottoms.length === 0) return "No well inside of this range.";
  const placed = ({ x, from, to }) => (to > from ? `${format(from, 3)} to ${format(to, 3)}` : format(isZero(x) ? 0 : x));
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
