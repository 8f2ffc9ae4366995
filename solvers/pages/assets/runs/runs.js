// Runs: every change makes one, which can be named, kept, drawn, compared, deleted and handed on.
//
// A run is {id, name, values, key, gesture, result, isKept, isShown}. All results that one movement
// of a slider gave are one run, and values that a run had already lead back to it.

const MOST_RUNS = 40; // beyond which the oldest one goes that people do not keep
const DASHES = ["1.5 3", "7 3", "7 3 1.5 3", "3 3"]; // of the curves of runs that are drawn below
const COLUMNS = ["rise_time", "settling_time", "overshoot", "peak"]; // of the table

/** Add a history of runs to the store. */
function keepRuns(app) {
  let [count, name] = [0, null];
  Object.assign(app, {
    runs: [],
    reference: null, // the run that others are compared with
    current: null,
    record(result, values, gesture) {
      const key = keyOf(values);
      let run = app.runs.find((each) => each.key === key);
      if (!run && app.current?.gesture === gesture && !isFixed(app.current)) run = app.current;
      if (!run) {
        run = { id: ++count, name: `Run ${count}`, isKept: false, isShown: count === 1 };
        app.runs.push(run);
      }
      if (name) [run.name, run.isKept, name] = [name, true, null];
      Object.assign(run, { values, key, gesture, result });
      app.current = run;
      app.reference ??= run;
      const old = app.runs.find((each) => !each.isKept && !isFixed(each) && each !== run);
      if (app.runs.length > MOST_RUNS && old) remove(old);
    },
    /** Name the next run as an address says. */
    nameNext: (text) => (name = text),
    changeRun(run, changes) {
      Object.assign(run, changes);
      app.changed("runs");
    },
    compareWith(run) {
      if (!app.reference.isKept) app.reference.isShown = false;
      app.reference = run;
      app.changeRun(run, { isShown: true });
    },
    deleteRun(run) {
      remove(run);
      if (app.reference === run) app.reference = app.current;
      app.changed("runs");
    },
    /** List the runs that are drawn below the present one: {run, dash}. */
    overlays: () =>
      app.runs
        .filter((run) => run.isShown && run.result !== app.result)
        .map((run) => ({ run, dash: dashOf(run, app) })),
  });
  const isFixed = (run) => run.isKept || run.isShown || run === app.reference;
  const remove = (run) => app.runs.splice(app.runs.indexOf(run), 1);
}

function dashOf(run, app) {
  return DASHES[app.runs.filter((each) => each.isShown).indexOf(run) % DASHES.length];
}

function keyOf({ parameters, initial, inputs, tFinal }) {
  return [...[parameters, initial, inputs].map((each) => Object.values(each).join(";")), tFinal].join("|");
}

/** List the values by which runs differ from how the page came: {kind, path}, in their order. */
function changedPaths(app) {
  const found = new Map();
  for (const { values } of app.runs) {
    for (const [kind, path] of changes(app, values)) found.set(`${kind}:${path}`, { kind, path });
  }
  return [...found.values()];
}

/** Put the table of runs into an element. */
function mountRuns(place, data, app) {
  const table = element("table", { class: "runs" });
  const button = (name, onclick) => element("button", { type: "button", onclick }, name);
  const all = element(
    "p",
    { class: "buttons" },
    button("Runs as CSV", () => download(`${data.name}_runs.csv`, runsAsCsv(data, app), "text/csv")),
    button("Runs as JSON", () => download(`${data.name}_runs.json`, runsAsJson(data, app), "application/json")),
  );
  place.append(element("div", { class: "scrolling" }, table), all);
  let drawn = "";

  function draw() {
    if (app.moving) return; // until the slider rests
    const columns = changedPaths(app);
    const responses = data.responses.slice(0, 1);
    const text = (run) => [app.goals, run.id, run.key, run.name, run.isKept, run.isShown, run === app.reference, run === app.current];
    const key = JSON.stringify([columns, app.runs.map(text)]);
    if (key === drawn || (table.contains(document.activeElement) && document.activeElement.type === "text")) return;
    drawn = key;
    const focused = document.activeElement?.dataset?.act;
    const heads = [
      ...columns.map(({ path }) => breakable(path)),
      ...responses.flatMap(() => COLUMNS.map(titleOf)),
      ...(app.goals.length > 0 ? ["goals"] : []),
    ];
    const head = element("tr", {}, ["Run", ...heads, ""].map((each) => element("th", { scope: "col" }, each)));
    const rows = app.runs.map((run) => makeRow(run, columns, data, app));
    table.replaceChildren(element("thead", {}, head), element("tbody", {}, rows.reverse()));
    if (focused) table.querySelector(`[data-act="${CSS.escape(focused)}"]`)?.focus();
  }
  for (const topic of ["result", "runs", "goals"]) app.on(topic, draw);
}

const titleOf = (figure) => TILES.find(([key]) => key === figure)[1];

function makeRow(run, columns, data, app) {
  const responses = data.responses.slice(0, 1);
  const { reference } = app;
  const act = (name, text, onclick, pressed) =>
    element(
      "button",
      {
        type: "button",
        onclick,
        title: `${name} ${run.name}`,
        "aria-label": `${name} ${run.name}`,
        "aria-pressed": pressed === undefined ? null : String(pressed),
        data: { act: `${name} ${run.id}` },
      },
      text,
    );
  const field = element("input", {
    type: "text",
    value: run.name,
    "aria-label": `Name of run ${run.id}`,
    onchange: () => {
      run.name = field.value.trim() || `Run ${run.id}`;
      field.blur();
      app.changeRun(run, { isKept: true });
    },
  });
  const values = columns.map(({ kind, path }) => {
    const [numbers, others] = [run, reference].map(({ values }) => values[kind][path]);
    const text = numbers.map((each) => format(each)).join(", ");
    return element("td", { class: same(numbers, others) ? "" : "other", data: { path, title: path.split(".").at(-1) } }, text);
  });
  const figures = responses.flatMap((response) => {
    const [now, before] = [run, reference].map(({ result }) => measured(response, result, app));
    return COLUMNS.map((key) => {
      const [number, other] = [now, before].map((each) => each?.[key] ?? NaN);
      const by = number - other;
      const moved = run !== reference && Number.isFinite(by) && format(number) !== format(other);
      const change = moved ? element("span", { class: "change" }, `${by > 0 ? "+" : ""}${format(by, 3)}`) : null;
      return element("td", { data: { figure: key, number: String(number), title: titleOf(key) } }, format(number), change);
    });
  });
  const met = app.goals.filter((goal) => holds(goal, goalNumber(goal, run.result, data, app))).length;
  const judged = element(
    "td",
    { class: met < app.goals.length ? "missed" : null, data: { title: "goals", met } },
    `${met < app.goals.length ? "✗" : "✓"} ${met} of ${app.goals.length}`,
  );
  const shown = element("input", {
    type: "checkbox",
    checked: run.isShown,
    "aria-label": `Draw ${run.name}`,
    data: { act: `Draw ${run.id}` },
    onchange: (event) => app.changeRun(run, { isShown: event.target.checked }),
  });
  const dash = run.isShown && run !== app.current ? dashOf(run, app) : "";
  const line = svgElement("line", { x2: 24, y1: 5, y2: 5, style: { strokeDasharray: dash } });
  const sample = svgElement("svg", { class: "sample", width: 24, height: 10, "aria-hidden": "true" }, line);
  const named = element("div", {}, shown, run.isShown || run === app.current ? sample : null, field);
  const name = element("th", { scope: "row" }, named);
  const acts = element(
    "td",
    { class: "acts" },
    act("Load", "Load", () => app.restore(run.values)),
    act("Compare with", "Compare", () => app.compareWith(run), run === reference),
    act("Keep", "Keep", () => app.changeRun(run, { isKept: !run.isKept }), run.isKept),
    act("Link to", "Link", () => copyLink(linkOf(app, run.values, run.name))),
    run === app.current ? null : act("Delete", "×", () => app.deleteRun(run)),
  );
  return element("tr", { class: run === app.current ? "present" : null }, name, values, figures, app.goals.length > 0 ? judged : [], acts);
}

/** List the runs as plain data: names, values that differ, figures. */
function runsAsData(data, app) {
  const columns = changedPaths(app);
  return app.runs.map((run) => ({
    name: run.name,
    t_final: run.values.tFinal,
    values: Object.fromEntries(columns.map(({ kind, path }) => [path, run.values[kind][path]])),
    figures: Object.fromEntries(
      data.responses.map((response) => [response.signal, figuresOf(measured(response, run.result, app))]),
    ),
    result: run.result,
  }));
}

function figuresOf(found) {
  return Object.fromEntries(TILES.map(([key]) => [key, Number.isFinite(found?.[key]) ? found[key] : null]));
}

function runsAsJson(data, app) {
  const runs = runsAsData(data, app).map(({ result, ...about }) => ({
    ...about,
    time: [...result.time],
    signals: Object.fromEntries(app.shown.map((name) => [name, [...(app.rowOf(name, result) ?? [])]])),
  }));
  const text = (_, each) => (typeof each === "number" && !Number.isFinite(each) ? String(each) : each);
  return `${JSON.stringify({ system: data.name, runs }, text, 1)}\n`;
}

function runsAsCsv(data, app) {
  const rows = runsAsData(data, app).map(({ name, t_final, values, figures }) => {
    const numbers = Object.entries(values).flatMap(([path, each]) => {
      return each.map((number, k) => [each.length > 1 ? `${path}[${k}]` : path, number]);
    });
    const told = Object.entries(figures).flatMap(([signal, each]) =>
      Object.entries(each).map(([key, number]) => [`${signal} ${key}`, number ?? ""]),
    );
    return [["run", name], ["t_final", t_final], ...numbers, ...told];
  });
  return asRows([(rows[0] ?? []).map(([name]) => name), ...rows.map((row) => row.map(([, value]) => value))]);
}
