// The scope below the charts: two cursors with statistics between them, spectra, and loop gains.

const FIGURES = [
  ["A", ({ a }) => a],
  ["B", ({ b }) => b],
  ["B − A", ({ a, b }) => b - a],
  ["slope", ({ a, b, first, last }) => (b - a) / (last - first), "/s"],
  ["least", ({ least }) => least],
  ["greatest", ({ greatest }) => greatest],
  ["mean", ({ mean }) => mean],
  ["RMS", ({ rms }) => rms],
];
const MOST_SAMPLES = 16384; // of a spectrum
const FLOOR = 1e-9; // of the greatest amplitude, below which a spectrum is rounding

/** Return the figures of a line between two places: integrals are exact for what is drawn. */
function statistics(line, [first, last]) {
  const { x, y, held } = line;
  const [a, b] = [heightAt(line, first), heightAt(line, last)];
  let [least, greatest, area, square] = [Math.min(a, b), Math.max(a, b), 0, 0];
  let [at, height] = [first, a];
  const add = (next, value) => {
    const width = next - at;
    const end = held ? height : value;
    area += 0.5 * (height + end) * width;
    square += ((height * height + height * end + end * end) / 3) * width;
    [at, height] = [next, value];
  };
  for (let k = placeOf(x, first) + 1; k < x.length && x[k] <= last; k++) {
    least = Math.min(least, y[k]);
    greatest = Math.max(greatest, y[k]);
    add(x[k], y[k]);
  }
  add(last, b);
  const span = last - first;
  return { first, last, a, b, least, greatest, mean: area / span, rms: Math.sqrt(square / span) };
}

/** Return the amplitudes of a line over frequency, {x, y}, without its mean, by Hann's window. */
function spectrumOf(line, [first, last]) {
  const [begin, end] = indicesIn(line.x, [first, last]);
  const count = 2 ** Math.min(Math.log2(MOST_SAMPLES), Math.ceil(Math.log2(Math.max(end - begin, 64))));
  const times = Array.from({ length: count }, (_, k) => first + ((last - first) * k) / count);
  const values = Float64Array.from(times, (time) => heightAt(line, time));
  if (!values.every(Number.isFinite)) return { x: [], y: [] };
  const mean = values.reduce((sum, each) => sum + each, 0) / count;
  const window = Float64Array.from(values, (_, k) => 1 - Math.cos((2 * Math.PI * k) / count)); // its mean is 1
  const [re, im] = [values.map((each, k) => window[k] * (each - mean)), new Float64Array(count)];
  transform(re, im);
  const numbers = Array.from({ length: count / 2 - 1 }, (_, k) => k + 1);
  const least = 1e-13 * Math.abs(mean); // below which there is rounding
  return {
    x: numbers.map((k) => k / (last - first)),
    y: numbers.map((k) => (2 / count) * Math.hypot(re[k], im[k])).map((each) => (each > least ? each : 0)),
  };
}

/** Replace complex numbers, as many as a power of two, by their Fourier transform. */
function transform(re, im) {
  const count = re.length;
  for (let i = 1, j = 0; i < count; i++) {
    let bit = count >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) [re[i], re[j], im[i], im[j]] = [re[j], re[i], im[j], im[i]];
  }
  for (let size = 2; size <= count; size *= 2) {
    const half = size / 2;
    for (let k = 0; k < half; k++) {
      const angle = (-2 * Math.PI * k) / size;
      const [c, s] = [Math.cos(angle), Math.sin(angle)];
      for (let i = k; i < count; i += size) {
        const j = i + half;
        const [p, q] = [re[j] * c - im[j] * s, re[j] * s + im[j] * c];
        [re[j], im[j], re[i], im[i]] = [re[i] - p, im[i] - q, re[i] + p, im[i] + q];
      }
    }
  }
}

/** Return lines of the signals that charts show, of the present run and of those drawn below. */
function linesShown(names, app) {
  const runs = [{ result: app.result }, ...app.overlays().map(({ run, dash }) => ({ ...run, dash }))];
  return names.flatMap((name) =>
    runs.map(({ result, dash, name: run }) => {
      const [x, y] = pointsOf(name, result, app);
      const { held, unit } = app.signals.get(pathOf(name));
      return { name, run, x, y, held, unit, dash };
    }),
  ).filter(({ x }) => x.length > 1);
}

/** Put the scope into an element. */
function mountScope(place, data, app, model) {
  const answers = data.responses.map(({ signal }) => signal);
  const foremost = (names) => names.find((name) => answers.includes(name)) ?? names[0] ?? "";
  const table = element("table", { class: "figures" });
  const ends = ["A", "B"].map((name, k) => {
    const field = element("input", {
      type: "text",
      class: "end",
      inputmode: "decimal",
      autocomplete: "off",
      "aria-label": `Cursor ${name}`,
      onchange: () => {
        const time = parse(field.value);
        if (Number.isFinite(time)) app.mark(k, time);
        else tell("A cursor is at a time");
        draw();
      },
    });
    return field;
  });
  const between = element("output", { class: "note" });
  const cursors = element(
    "div",
    { class: "part" },
    element("p", { class: "ends" }, "A ", ends[0], " s  B ", ends[1], " s  ", between),
    element("div", { class: "scrolling" }, table),
  );
  const spectrum = makeSpectrum(app, foremost);
  const bode = data.loops.length > 0 ? makeBode(data, app, model) : null;
  const whole = element("button", { type: "button", onclick: () => app.zoom(null) }, "All times");
  const toggle = (name, part, act) => {
    const button = element("button", { type: "button", "aria-pressed": "false" }, name);
    part.hidden = true;
    button.addEventListener("click", () => {
      part.hidden = !part.hidden;
      button.setAttribute("aria-pressed", String(!part.hidden));
      act(!part.hidden);
    });
    return button;
  };
  const buttons = element(
    "p",
    { class: "buttons" },
    toggle("Cursors", cursors, (isOn) => app.measure(isOn)),
    toggle("Spectrum", spectrum.part, draw),
    bode && toggle("Bode", bode.part, draw),
    whole,
  );
  place.append(...[buttons, cursors, spectrum.part, bode?.part].filter(Boolean));

  function draw() {
    whole.hidden = app.zoomed === null;
    for (const view of [spectrum, bode]) if (view && !view.part.hidden) view.draw();
    if (cursors.hidden || app.marks === null) return;
    const range = [...app.marks].sort((a, b) => a - b);
    app.marks.forEach((time, k) => {
      if (document.activeElement !== ends[k]) ends[k].value = format(time, 6);
    });
    const span = range[1] - range[0];
    between.textContent = span > 0 ? `B − A ${format(span)} s, 1/(B − A) ${format(1 / span)} Hz` : "";
    const head = element("tr", {}, ["", ...FIGURES.map(([name]) => name)].map((each) => element("th", { scope: "col" }, each)));
    const rows = linesShown(app.shown.filter((name) => !app.hidden.has(name)), app).map((line) => {
      const found = statistics(line, range);
      const isTurned = app.marks[0] > app.marks[1];
      if (isTurned) [found.a, found.b, found.first, found.last] = [found.b, found.a, found.last, found.first];
      const unit = element("span", { class: "unit" }, ` ${unitText(line.unit)}`);
      const cells = FIGURES.map(([name, read]) => {
        const number = read(found);
        return element("td", { data: { figure: name, number: String(number), title: name } }, format(number));
      });
      const label = line.run ? `${line.name}, ${line.run}` : line.name;
      return element("tr", {}, element("th", { scope: "row" }, label, unit), cells);
    });
    table.replaceChildren(element("thead", {}, head), element("tbody", {}, rows));
  }
  for (const topic of ["result", "runs", "shown", "zoom", "marks"]) app.on(topic, draw);
  draw();
}

/** Make the chart of a spectrum, between the cursors where they are there, else of what is seen. */
function makeSpectrum(app, foremost) {
  const choice = element("select", { "aria-label": "Signal of the spectrum", onchange: () => draw() });
  const looks = { across: false, up: true };
  const scale = (name, key) => {
    const button = element("button", { type: "button", "aria-pressed": String(looks[key]) }, name);
    button.addEventListener("click", () => {
      looks[key] = !looks[key];
      zoomed = null;
      button.setAttribute("aria-pressed", String(looks[key]));
      draw();
    });
    return button;
  };
  let zoomed = null;
  const chart = makeChart({
    zoom: (range) => draw((zoomed = range)),
    reset: () => draw((zoomed = null)),
  });
  const canvas = element("div", {}, chart.face);
  const buttons = element("p", { class: "buttons" }, choice, scale("log frequency", "across"), scale("log amplitude", "up"));
  const part = element("div", { class: "part" }, buttons, canvas, element("p", { class: "axis" }, "frequency [Hz]"));
  let width = 0;
  followWidth(canvas, (now) => {
    width = now;
    draw();
  });
  function draw() {
    if (width === 0 || part.hidden || app.result === null) return;
    const known = app.shown.join("\n");
    if (choice.dataset.known !== known) {
      const before = choice.value;
      choice.replaceChildren(...app.shown.map((name) => element("option", { value: name }, name)));
      choice.value = app.shown.includes(before) ? before : foremost(app.shown);
      choice.dataset.known = known;
    }
    const range = app.marks === null ? app.seen() : [...app.marks].sort((a, b) => a - b);
    const lines = range[1] > range[0] && choice.value ? linesShown([choice.value], app) : [];
    const drawn = lines.map((line) => ({ ...line, ...runLook(line.dash), ...spectrumOf(line, range), held: false }));
    const top = extentOf(drawn, [0, Infinity]).greatest;
    for (const line of drawn) line.y = line.y.map((each) => (each > FLOOR * top || !looks.up ? each : NaN));
    const [first, last] = [drawn[0]?.x[0] ?? 0.1, drawn[0]?.x.at(-1) ?? 10];
    const x = { range: zoomed ?? [looks.across ? first : 0, last], logarithmic: looks.across };
    chart.draw({ width, height: 200, margin: { ...MARGIN, b: FOOT }, x, y: { logarithmic: looks.up }, lines: drawn.reverse() });
  }
  return { part, draw };
}
