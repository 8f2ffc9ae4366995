// Goals: bounds of figures, as tiles that turn red, and strips that show where all of them hold.

const PARTS = 17; // of a strip
const LONGEST = 30000; // milliseconds, after which no further strip is begun
const REST = 250; // milliseconds without a change, after which strips are computed
const OF_SIGNALS = {
  least: (row) => row.reduce((found, each) => Math.min(found, each), Infinity),
  greatest: (row) => row.reduce((found, each) => Math.max(found, each), -Infinity),
  last: (row) => row[row.length - 1],
};

/** List what goals can bound: {figure, signal, unit}. */
function boundable(data, app) {
  const ofResponses = data.responses.flatMap(({ signal }) => {
    const unit = app.signals.get(pathOf(signal)).unit;
    return TILES.map(([figure, , own]) => ({ figure, signal, unit: own.replace("U", unit).trim() }));
  });
  const ofSignals = app.shown.flatMap((signal) => {
    const { unit } = app.signals.get(pathOf(signal));
    return Object.keys(OF_SIGNALS).map((figure) => ({ figure, signal, unit }));
  });
  return [...ofResponses, ...ofSignals];
}

/** Return the number that a goal bounds, in a result; NaN where it has none. */
function goalNumber({ figure, signal }, result, data, app) {
  if (figure in OF_SIGNALS) {
    const row = app.rowOf(signal, result);
    return row === null ? NaN : OF_SIGNALS[figure](row);
  }
  const response = data.responses.find((each) => each.signal === signal);
  return measured(response, result, app)?.[figure] ?? NaN;
}

/** Tell whether a goal holds for a number; one that is not known does not. */
function holds({ comparison, limit }, number) {
  return comparison === "<" ? number < limit : number > limit;
}

function goalName({ figure, signal }) {
  return `${TILES.find(([key]) => key === figure)?.[1] ?? figure} of ${signal}`;
}

/** Put the goals into an element, and strips below the sliders of controls. */
function mountGoals(place, data, app, controls, makeRunner) {
  const tiles = element("ul", { class: "goals" });
  const quantity = element("select", { "aria-label": "What the goal bounds" });
  const comparison = element(
    "select",
    { "aria-label": "Below or above" },
    ["<", ">"].map((each) => element("option", {}, each)),
  );
  const limit = element("input", { type: "text", class: "end", inputmode: "decimal", "aria-label": "Bound of the goal" });
  const refusal = element("p", { class: "refusal", role: "alert" });
  const add = (event) => {
    event.preventDefault();
    const number = parse(limit.value);
    refusal.textContent = !Number.isFinite(number)
      ? "A goal needs a number as its bound"
      : quantity.value ? "" : "A goal needs a signal in the charts";
    if (refusal.textContent) return;
    const { figure, signal, unit } = JSON.parse(quantity.value);
    app.goals = [...app.goals, { figure, signal, unit, comparison: comparison.value, limit: number }];
    app.changed("goals");
  };
  const form = element(
    "form",
    { onsubmit: add },
    quantity,
    element("p", { class: "ends" }, comparison, " ", limit, " ", element("button", { type: "submit" }, "Add")),
    refusal,
  );
  const fold = element("details", { class: "rest" }, element("summary", {}, "Add a goal"), form);
  place.prepend(tiles, fold);
  const strips = makeStrips(data, app, controls, makeRunner);

  function offer() {
    const options = boundable(data, app).map((each) => element("option", { value: JSON.stringify(each) }, goalName(each)));
    quantity.replaceChildren(...options);
  }
  function draw() {
    if (app.result === null) return;
    tiles.replaceChildren(
      ...app.goals.map((goal) => {
        const number = goalNumber(goal, app.result, data, app);
        const isMet = holds(goal, number);
        const unit = unitText(goal.unit);
        const remove = () => {
          app.goals = app.goals.filter((each) => each !== goal);
          app.changed("goals");
        };
        const name = goalName(goal);
        return element(
          "li",
          { class: isMet ? "goal" : "goal missed", data: { number: String(number), met: isMet } },
          element("span", {}, `${name} ${goal.comparison} ${format(goal.limit)} ${unit}`),
          element("b", {}, `${isMet ? "✓" : "✗"} ${format(number)}`),
          element("button", { type: "button", class: "out", "aria-label": `Remove the goal for ${name}`, onclick: remove }, "×"),
        );
      }),
    );
  }
  for (const topic of ["result", "goals"]) app.on(topic, draw);
  app.on("shown", offer);
  for (const topic of ["result", "goals"]) app.on(topic, strips.soon);
  offer();
}

/** Make what computes strips: one slider after the other, as soon as hands rest. */
function makeStrips(data, app, controls, makeRunner) {
  let [timer, turn, way] = [0, 0, null];
  let running = Promise.resolve(); // a worker does one run after the other
  function soon() {
    clearTimeout(timer);
    turn++;
    way?.stop();
    if (app.goals.length === 0 && way === null) return;
    for (const { strip } of controls) strip.classList.add("old");
    timer = setTimeout(compute, REST);
  }
  async function compute() {
    const [mine, begin] = [turn, performance.now()];
    way ??= makeRunner(); // in a worker of its own, so that the runs of hands do not wait
    const isLate = () => mine !== turn;
    for (const control of controls) {
      const scale = control.scale();
      control.strip.hidden = app.goals.length === 0 || scale === null;
      if (control.strip.hidden || !control.strip.checkVisibility()) continue;
      if (performance.now() - begin > LONGEST) return;
      const met = [];
      for (let part = 0; part < PARTS; part++) {
        const value = clamped(scale.value(((part + 0.5) * PLACES) / PARTS), [scale.least, scale.greatest]);
        met.push(await meetsAll(control.with(value)));
        if (isLate()) return;
      }
      show(control.strip, met);
    }
  }
  /** Tell whether all goals hold with values; false where there is no run with these. */
  async function meetsAll(values) {
    if (values === null) return false;
    running = running.then(() => way.run(requestOf(values, data, app))).catch(() => null);
    const answer = await running;
    if (answer?.outcome !== "completed" && answer?.outcome !== "terminated") return false;
    const result = revived(answer);
    return app.goals.every((goal) => holds(goal, goalNumber(goal, result, data, app)));
  }
  function show(strip, met) {
    const colors = met.map((each, k) => {
      const [from, to] = [k, k + 1].map((part) => `${((100 * part) / PARTS).toFixed(2)}%`);
      return `var(${each ? "--met" : "--track"}) ${from} ${to}`;
    });
    strip.style.background = `linear-gradient(to right, ${colors.join(", ")})`;
    strip.dataset.met = met.map(Number).join("");
    strip.setAttribute("aria-label", `All goals hold in ${met.filter(Boolean).length} of ${PARTS} parts of the slider`);
    strip.classList.remove("old");
  }
  return { soon };
}
