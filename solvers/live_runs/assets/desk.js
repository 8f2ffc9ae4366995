// A desk for a diagram that runs in Python: charts, sliders and what the host can do.
//
// The host is a link, {send(message), receive(function)}. It says first what there is:
// {kind: "hello", title, signals: [{name, unit}], controls: [{path, value, unit, lower, upper, doc}],
// live}, then {kind: "rows", first, rows} with time in the first column, {kind: "state", ...},
// {kind: "values", values} and {kind: "refused", path, text}. A live host is sent set, pause, resume,
// step, seek, continue and stop; another one set alone.

const MOST_ROWS = 20000; // of samples that are kept
const SPANS = [1, 5, 20, 60, 300]; // seconds that the charts show
const MARGIN = { l: 62, r: 12, t: 6, b: 22 };
const COLORS = 6;

/** Fill a place with a desk. */
function mountDesk(place, link) {
  const rows = []; // samples, oldest first: [time, ...values]
  let [names, charts, controls, live] = [[], [], new Map(), false];
  let [follows, span, from] = [true, SPANS[1], 0]; // whether the charts follow the run
  let waiting = false;

  const told = element("p", { class: "note", role: "status" });
  const state = element("span", { id: "state" });
  const title = element("h1", {});
  const values = element("section", { class: "values", "aria-label": "Values" });
  const shown = element("section", { class: "charts", "aria-label": "Signals" });
  const bar = element("div", { class: "buttons" });
  place.classList.add("desk");
  place.append(element("header", {}, title, state, bar), element("main", {}, values, shown), told);

  link.receive((message) => {
    const { kind } = message;
    if (kind === "hello") begin(message);
    else if (kind === "rows") take(message);
    else if (kind === "state") showState(message);
    else if (kind === "values") for (const [path, value] of Object.entries(message.values)) controls.get(path)?.update(value);
    else if (kind === "refused") {
      told.textContent = message.text;
      controls.get(message.path)?.refuse();
    }
  });

  function begin(message) {
    live = message.live;
    names = message.signals;
    title.textContent = message.title;
    rows.length = 0;
    follows = true; // the new slider is at the end
    place.classList.remove("looking-back");
    charts = names.map((each, k) => {
      const chart = makeChart({ zoom: null, press: null });
      const reading = element("b", {});
      const look = { class: "swatch", style: { color: `var(--series-${(k % COLORS) + 1})` } };
      const head = element("p", {}, element("span", look), ` ${each.name} `, reading, ` ${unitText(each.unit)}`);
      const view = element("div", { class: "view" }, head, chart.face);
      return { ...chart, view, reading, k };
    });
    shown.replaceChildren(...charts.map((each) => each.view));
    controls = new Map(message.controls.map((each) => [each.path, makeSlider(each)]));
    values.replaceChildren(...[...controls.values()].map((each) => each.row));
    bar.replaceChildren(...(live ? liveButtons() : []));
  }

  function makeSlider({ path, value, unit, lower, upper, doc }) {
    let scale = scaleOf(value, lower ?? -Infinity, upper ?? Infinity);
    let now = value;
    const id = `value:${path}`;
    const field = element("input", {
      id, class: "number", type: "text", inputmode: "decimal", autocomplete: "off",
      onchange: () => {
        const number = parse(field.value);
        if (Number.isFinite(number)) write(number);
        else field.setAttribute("aria-invalid", "true");
      },
    });
    const slider = element("input", {
      type: "range", min: 0, max: PLACES, step: 1, "aria-label": `${path}, slider`,
      oninput: () => write(scale.value(Number(slider.value))),
    });
    const label = element("label", { for: id, title: [path, doc].filter(Boolean).join("\n") }, path);
    const row = element("div", { class: "control" }, label, field, element("span", { class: "unit" }, unitText(unit)), slider);
    const write = (number) => {
      told.textContent = "";
      show(number);
      send({ kind: "set", path, value: number });
    };
    const show = (number) => {
      now = number;
      scale = widened(scale, number);
      field.setAttribute("aria-invalid", "false");
      if (field.getRootNode().activeElement !== field) field.value = format(number, 6);
      slider.value = Math.round(scale.place(number));
      slider.style.setProperty("--part", `${(100 * slider.value) / PLACES}%`);
    };
    show(value);
    return { row, refuse: () => field.setAttribute("aria-invalid", "true"), update: (number) => number !== now && show(number) };
  }

  // A slider moves faster than a host answers: of what waits for one path, the last counts.
  const pending = new Map();
  function send(message) {
    if (message.kind !== "set") return link.send(message);
    if (pending.size === 0) setTimeout(() => {
      pending.forEach((each) => link.send(each));
      pending.clear();
    }, 40);
    pending.set(message.path, message);
  }

  function liveButtons() {
    const button = (text, act, title) => element("button", { type: "button", title, onclick: act }, text);
    const order = (kind, more = {}) => () => send({ kind, ...more });
    const choice = element("select", { "aria-label": "Seconds in sight", onchange: () => {
      span = Number(choice.value);
      draw();
    } }, SPANS.map((each) => element("option", { value: each, selected: each === span }, `${each} s`)));
    const back = element("input", { type: "range", min: 0, max: PLACES, step: 1, value: PLACES, "aria-label": "Look back", style: { "--part": "100%" },
      oninput: () => {
        back.style.setProperty("--part", `${(100 * back.value) / PLACES}%`);
        follows = Number(back.value) === PLACES;
        if (follows) place.classList.remove("looking-back");
        if (follows) draw();
        else send({ kind: "seek", share: Number(back.value) / PLACES, span });
      } });
    const on = button("Continue from here", () => {
      send({ kind: "continue", time: from + span });
      back.value = PLACES;
      follows = true;
      place.classList.remove("looking-back");
      rows.splice(rows.findLastIndex((row) => row[0] <= from + span) + 1);
    }, "Go back to the end of what is in sight, and run from there");
    on.classList.add("onward");
    return [
      button("Pause", order("pause")), button("Run", order("resume")), button("Step", order("step")),
      button("Stop", order("stop"), "End the run"), choice, back, on,
    ];
  }

  function take({ rows: more, seek, replaces }) {
    if (seek) {
      if (follows) return null; // it has come too late
      place.classList.add("looking-back");
      from = more.length ? more[more.length - 1][0] - span : 0;
      return plot(more, [Math.max(from, more[0]?.[0] ?? 0), from + span]);
    }
    if (replaces) rows.length = 0;
    while (rows.length && more.length && rows[rows.length - 1][0] >= more[0][0]) rows.pop(); // it was rewound
    for (const row of more) rows.push(row);
    if (rows.length > MOST_ROWS) rows.splice(0, rows.length - MOST_ROWS);
    draw();
  }

  function showState({ text, message }) {
    state.textContent = text;
    if (message) told.textContent = message;
  }

  function draw() {
    if (waiting || !follows) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      if (!rows.length || !follows) return;
      const last = rows[rows.length - 1][0];
      const begin = live ? Math.max(rows[0][0], last - span) : rows[0][0];
      plot(rows, [begin, Math.max(last, begin + 1e-9)]);
    });
  }

  function plot(table, range) {
    const first = table.findIndex((row) => row[0] >= range[0]);
    const part = first <= 0 ? table : table.slice(first - 1);
    const x = part.map((row) => row[0]);
    for (const { k, draw: drawChart, view, reading } of charts) {
      const y = part.map((row) => row[k + 1] ?? NaN);
      const line = { name: names[k].name, x, y, color: `--series-${(k % COLORS) + 1}`, width: 1.7, unit: names[k].unit };
      drawChart({ width: view.clientWidth, height: 150, margin: MARGIN, x: { range }, y: {}, lines: [line] });
      reading.textContent = y.length ? format(y[y.length - 1], 5) : "";
    }
    place.dataset.drawn = Number(place.dataset.drawn ?? 0) + 1;
  }
}
