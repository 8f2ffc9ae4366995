// The inside of mechanisms: a pressed flexure shows its stress and safety over time and its equations;
// a slider moves shapes of modes and of buckling.

/** Put the choice of a flexure below a mechanism, and what is known of the chosen one. */
function mountInside(place, data, mechanism, canvas, app) {
  const leaves = data.inside.filter(({ signals }) => signals.length > 0);
  if (leaves.length === 0) return;
  const choice = element(
    "select",
    { "aria-label": `Flexure of ${data.name}`, onchange: () => choose(leaves[choice.value] ?? null) },
    element("option", { value: "" }, "Press a flexure, or choose one"),
    leaves.map(({ path }, k) => element("option", { value: k }, path)),
  );
  const tiles = element("dl", { class: "tiles" });
  const charts = element("div");
  const law = element("pre", { class: "law" });
  const more = element("button", { type: "button", onclick: () => chosen.signals.forEach((path) => app.show(path)) }, "Add to the charts");
  const inside = element("div", { hidden: true }, tiles, charts, law, element("p", { class: "buttons" }, more));
  place.append(element("div", { class: "inside" }, choice, inside));
  let [chosen, rows, width] = [null, [], 0];

  function choose(leaf) {
    chosen = leaf;
    inside.hidden = leaf === null;
    choice.value = leaf === null ? "" : leaves.indexOf(leaf);
    if (leaf === null) return;
    law.textContent = leaf.law;
    law.hidden = leaf.law === "";
    rows = leaf.signals.map((path) => ({ path, chart: makeChart({ press: (time) => app.seek(time), zoom: app.zoom, reset: () => app.zoom(null) }) }));
    charts.replaceChildren(
      ...rows.flatMap(({ path, chart }) => [element("p", { class: "axis" }, titleOfSignal(path)), chart.face]),
    );
    app.need(leaf.signals);
    app.select(leaf.path);
    draw();
  }
  const titleOfSignal = (path) => {
    const unit = unitText(app.signals.get(path).unit);
    return `${path.slice(path.lastIndexOf(".") + 1).replace("_", " ")}${unit && ` [${unit}]`}`;
  };
  function draw() {
    if (chosen === null || app.result === null) return;
    const found = rows.map(({ path }) => linesShown([path], app));
    rows.forEach(({ chart }, k) => {
      const lines = found[k].map((line) => ({ ...line, ...runLook(line.dash) }));
      const margin = { ...MARGIN, b: FOOT };
      if (width > 0) chart.draw({ width, height: 110, margin, x: { range: app.seen() }, y: {}, lines: lines.reverse() });
      chart.rule("cursor", app.time);
    });
    const items = rows.flatMap(({ path }, k) => {
      const line = found[k].find(({ dash }) => dash === undefined);
      if (!line) return [];
      const isSafety = path.endsWith("safety");
      const extreme = OF_SIGNALS[isSafety ? "least" : "greatest"](line.y);
      const name = titleOfSignal(path);
      const tile = (about, number) =>
        element("div", { class: "tile", data: { number: String(number) } }, element("dt", {}, `${name}, ${about}`), element("dd", {}, element("span", { class: "value" }, format(number))));
      return [tile("at the cursor", heightAt(line, app.time)), tile(isSafety ? "least of the run" : "greatest of the run", extreme)];
    });
    tiles.replaceChildren(...items);
  }

  let begun = null;
  canvas.addEventListener("pointerdown", (event) => (begun = [event.clientX, event.clientY]));
  canvas.addEventListener("pointerup", (event) => {
    if (begun === null || Math.hypot(event.clientX - begun[0], event.clientY - begun[1]) > TAP) return;
    const { left, top } = canvas.getBoundingClientRect();
    const ribbon = mechanism.ribbonAt(event.clientX - left, event.clientY - top);
    const leaf = ribbon === null ? undefined : leaves.find(({ path }) => path === data.inside[ribbon].path);
    if (leaf) choose(leaf);
  });
  followWidth(place, (now) => {
    width = now;
    draw();
  });
  for (const topic of ["result", "runs", "zoom", "time"]) app.on(topic, draw);
}

/** Return {app, mount}: an app in which poses are those of a shape or path, and its controls. */
function shapesOf(data, app) {
  let [chosen, phase] = [null, 0]; // degrees of a shape, or the row of a path
  function at(path, time) {
    if (chosen === null) return app.at(path, time);
    const body = data.signals.indexOf(path);
    const rows = body < 0 ? chosen.signals?.[path] : chosen.poses;
    if (!rows) return null; // forces are those of the run
    const place = chosen.labels ? phase : (phase / 360) * rows.length;
    const [before, after] = [0, 1].map((k) => rows[(Math.floor(place) + k) % rows.length]);
    const [begin, end] = body < 0 ? [0, before.length] : [12 * body, 12 * body + 12];
    return before.slice(begin, end).map((x, k) => x + (place % 1) * (after[begin + k] - x));
  }
  function mount(place, draw) {
    if (!data.shapes?.length) return;
    const label = element("output", { class: "note" });
    const turn = (to) => {
      phase = to;
      slider.style.setProperty("--part", `${(100 * to) / slider.max}%`);
      label.textContent = chosen?.labels?.[Math.round(to)] ?? "";
      draw();
    };
    const slider = element("input", { type: "range", min: 0, value: 0, oninput: () => turn(Number(slider.value)) });
    const choice = element(
      "select",
      {
        "aria-label": `Shape of ${data.name}`,
        onchange: () => {
          chosen = data.shapes[choice.value] ?? null;
          slider.hidden = chosen === null;
          slider.max = chosen?.labels ? chosen.labels.length - 1 : 360;
          slider.step = chosen?.labels ? 0.1 : 5;
          slider.setAttribute("aria-label", chosen?.labels ? "Place on the load path" : "Phase of the shape in degrees");
          slider.value = 0;
          turn(0);
        },
      },
      element("option", { value: "" }, "Motion of the run, or a shape"),
      data.shapes.map(({ name }, k) => element("option", { value: k }, name)),
    );
    slider.hidden = true;
    place.append(element("div", { class: "inside" }, choice, slider, label));
  }
  return { app: Object.create(app, { at: { value: at } }), mount };
}
