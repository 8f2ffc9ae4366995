// Sliders and number fields, in groups by block.

const MOST_COMPONENTS = 12; // of an array that gets fields

/** Put controls of all values into an element: the foremost ones at hand, others to be found.
 *
 * Returns the controls.
 */
function mountControls(place, data, app) {
  const items = controlsOf(data, app);
  const foremost = items.filter((item) => item.foremost);
  const rest = items.filter((item) => !item.foremost);
  const rows = [];
  const grouped = (chosen, titles) => {
    const groups = new Map();
    for (const item of chosen) {
      if (!groups.has(item.group)) groups.set(item.group, []);
      const made = item.components.map((component) => makeControl(item, component, app));
      rows.push(...made);
      groups.get(item.group).push(...made.map((control) => control.row));
    }
    return [...groups].map(([title, list]) =>
      element("fieldset", { data: { block: title } }, element("legend", {}, titles(title)), list),
    );
  };
  const finalTime = makeFinalTime(data, app);
  place.append(...grouped(foremost, (title) => title), element("fieldset", {}, finalTime.row));
  if (rest.length > 0) place.append(makeRest(grouped(rest, (title) => title), rest.length));
  const update = () => [...rows, finalTime].forEach((control) => control.update());
  app.on("values", update);
  app.on("selected", () => pointAt(place, app.selected));
  update();
  return rows;
}

/** List what can be changed: parameters, initial states and free inputs, with their components. */
function controlsOf(data, app) {
  const order = new Map(data.foremost.map((path, k) => [path, k]));
  const tied = new Map(Object.entries(data.tied ?? {}).map(([path, all]) => [all[0], { path, all }]));
  const kinds = [
    ["parameters", app.info.parameters],
    ["inputs", app.info.inputs],
    ["initial", [...app.info.states, ...app.info.discrete]],
  ];
  const items = kinds.flatMap(([kind, list]) =>
    list.map((item) => {
      const values = app.start[kind][item.path];
      const { path: shown, all: moves } = tied.get(item.path) ?? { path: item.path, all: [item.path] };
      const cut = shown.lastIndexOf(".");
      const last = shown.slice(cut + 1);
      const name = kind === "initial" ? `initial ${last}` : last;
      const block = shown.slice(0, Math.max(cut, 0)) || app.info.name;
      return {
        ...item,
        kind,
        shown,
        moves,
        group: kind === "initial" ? "Initial state" : block,
        foremost: order.has(item.path),
        likes: kind === "parameters" && moves.length === 1 ? alike(item, list, app) : [],
        components: values.slice(0, MOST_COMPONENTS).map((value, k) => ({
          k,
          value,
          ...named(kind, shown, name, values.length > 1 ? `[${item.labels[k] ?? k}]` : ""),
          lower: at(item.lower, k, -Infinity),
          upper: at(item.upper, k, Infinity),
        })),
      };
    }),
  );
  const rank = (item) => order.get(item.path) ?? Infinity;
  return items.sort((a, b) => (rank(a) === rank(b) ? 0 : rank(a) - rank(b)));
}

/** List the parameters of other blocks that have the name, unit, bounds and value of one. */
function alike(item, list, app) {
  const { path } = item;
  const nameOf = (each) => each.slice(each.lastIndexOf(".") + 1);
  const value = (each) => app.start.parameters[each];
  const isLike = (other) =>
    other.path !== path &&
    other.path.includes(".") &&
    nameOf(other.path) === nameOf(path) &&
    ["unit", "lower", "upper", "exclusive", "infinite"].every((key) => String(other[key]) === String(item[key])) &&
    same(value(other.path), value(path));
  return list.filter(isLike).map((other) => other.path);
}

/** Return how a component is called: beside its field, and where people do not see its block. */
function named(kind, path, name, part) {
  return { name: name + part, label: `${kind === "initial" ? "initial " : ""}${path}${part}` };
}

function at(bound, k, otherwise) {
  const value = Array.isArray(bound) ? bound.flat(Infinity)[k] : bound;
  return typeof value === "number" ? value : otherwise;
}

/** Make one row: a label, a number field with its unit, a slider, and the way back. */
function makeControl(item, { k, value, name, label: fullName, lower, upper }, app) {
  const id = `${item.kind}:${item.path}:${k}`;
  const about = [item.shown, item.doc, boundsText(item, lower, upper)].filter(Boolean).join("\n");
  let scale = Number.isFinite(value) ? scaleOf(value, lower, upper) : null;
  const read = () => app.values[item.kind][item.path][k];
  let paths = item.moves; // which the control moves
  /** Return the numbers of all paths with one of them changed, and why they are refused, if so. */
  const changed = (number) => {
    const numbers = Object.fromEntries(
      paths.map((path) => [path, app.values[item.kind][path].with(k, number)]),
    );
    const reasons = Object.entries(numbers).map(([path, each]) => contradiction(path, each, app));
    return { numbers, reason: reasons.find((each) => each !== null) ?? null };
  };
  const write = (number, isMoving = false) => {
    const { numbers, reason } = changed(number);
    if (reason === null) app.setMany(item.kind, numbers, isMoving);
    else if (isMoving) update(); // puts the slider back
    refusal.textContent = reason ?? "";
    return reason === null;
  };
  const field = element("input", {
    id,
    class: "number",
    type: "text",
    inputmode: "decimal",
    autocomplete: "off",
    spellcheck: "false",
    "aria-label": fullName,
    "aria-describedby": `${id}:unit ${id}:refusal`,
    onchange: () => accept(parse(field.value)),
    onkeydown: (event) => event.key === "Enter" && field.blur(),
  });
  const slider = element("input", {
    type: "range",
    min: 0,
    max: PLACES,
    step: 1,
    "aria-label": `${fullName}, slider`,
    oninput: () => write(clamped(scale.value(Number(slider.value)), [scale.least, scale.greatest]), true),
    onchange: () => app.settle(),
  });
  const back = element("button", {
    type: "button",
    class: "back",
    title: `Back to ${format(value, 6)}`,
    "aria-label": `${fullName} back to ${format(value, 6)}`,
    onclick: () => write(value),
  });
  back.textContent = "↺";
  const unit = element("span", { class: "unit", id: `${id}:unit` }, unitText(item.unit ?? ""));
  const label = element("label", { for: id, title: about }, breakable(name));
  const row = element("div", { class: "control", data: { path: item.shown } });
  const refusal = element("p", { class: "refusal", id: `${id}:refusal`, role: "alert" });
  const strip = element("div", { class: "strip", role: "img", hidden: true });
  row.append(label, back, field, unit, slider, strip, refusal);
  if (item.likes.length > 0) label.after(makeTie());

  /** Make the button that ties the values of other blocks to this one. */
  function makeTie() {
    const all = [item.path, ...item.likes];
    const tie = element(
      "button",
      {
        type: "button",
        class: "tie",
        title: `One value for ${all.join(", ")}`,
        "aria-label": `Tie ${fullName} to ${item.likes.join(", ")}`,
        "aria-pressed": "false",
        onclick: () => {
          paths = paths.length > 1 ? [item.path] : all;
          tie.setAttribute("aria-pressed", String(paths.length > 1));
          write(read());
        },
      },
      `= ${all.length}`,
    );
    return tie;
  }

  function accept(number) {
    const inside = number >= lower && number <= upper;
    const onBound = item.exclusive && (number === lower || number === upper);
    const fine = inside && !onBound && (Number.isFinite(number) || item.infinite === true);
    const bounds = boundsText(item, lower, upper);
    refusal.textContent = fine ? "" : `${fullName} takes a number ${bounds}`.trimEnd();
    field.setAttribute("aria-invalid", String(!fine));
    if (fine && !write(number)) field.setAttribute("aria-invalid", "true");
  }
  function update() {
    const now = read();
    if (Number.isFinite(now)) scale = scale ? widened(scale, now) : scaleOf(now, lower, upper);
    slider.disabled = scale === null;
    row.classList.toggle("changed", !Object.is(now, value));
    back.disabled = Object.is(now, value);
    if (document.activeElement !== field || field.getAttribute("aria-invalid") === "false") {
      field.value = format(now, 6);
      field.setAttribute("aria-invalid", "false");
      refusal.textContent = "";
    }
    if (scale !== null && Number.isFinite(now)) {
      if (document.activeElement !== slider || Math.abs(scale.place(now) - slider.value) > 1) {
        slider.value = Math.round(scale.place(now));
      }
      slider.style.setProperty("--part", `${(100 * slider.value) / PLACES}%`);
      slider.setAttribute("aria-valuetext", `${format(now)} ${item.unit ?? ""}`.trim());
    }
  }
  /** Return the values of the page with another number here; null for what is refused. */
  function valuesWith(number) {
    const { numbers, reason } = changed(number);
    const values = { ...app.values, [item.kind]: { ...app.values[item.kind], ...numbers } };
    return reason === null ? values : null;
  }
  return { row, update, strip, scale: () => scale, with: valuesWith };
}

/** Say which relation to another parameter the numbers of one would break; null for none. */
function contradiction(path, numbers, app) {
  for (const { left, comparison, right } of app.info.relations) {
    if (path !== left && path !== right) continue;
    const [low, high] = [left, right].map((each) =>
      each === path ? numbers : app.values.parameters[each],
    );
    const place = placeOfContradiction(low, comparison, high);
    if (place < 0) continue;
    const [kept, least] = path === left ? [high, false] : [low, true];
    const sign = { "<=": least ? "≥" : "≤", "<": least ? ">" : "<" }[comparison];
    const number = format(kept[kept.length > 1 ? place : 0], 6);
    return `${path} has to be ${sign} ${number}, which is ${least ? left : right}`;
  }
  return null;
}

/** Return where numbers do not compare as they have to; -1 for nowhere. */
function placeOfContradiction(left, comparison, right) {
  const count = Math.max(left.length, right.length);
  const at = (numbers, k) => numbers[numbers.length > 1 ? k : 0];
  return Array.from({ length: count }).findIndex((_, k) =>
    comparison === "<" ? !(at(left, k) < at(right, k)) : !(at(left, k) <= at(right, k)),
  );
}

/** Let a long name go on in the next line after an underscore. */
function breakable(name) {
  return name.split(/(?<=_)/).flatMap((part) => [part, element("wbr")]);
}

function boundsText({ exclusive }, lower, upper) {
  const [above, below] = exclusive ? [">", "<"] : ["≥", "≤"];
  const parts = [];
  if (lower > -Infinity) parts.push(`${above} ${format(lower)}`);
  if (upper < Infinity) parts.push(`${below} ${format(upper)}`);
  return parts.join(" and ");
}

/** Make the row for the end of the run. */
function makeFinalTime(data, app) {
  const field = element("input", {
    id: "final-time",
    class: "number",
    type: "text",
    inputmode: "decimal",
    autocomplete: "off",
    onchange: () => {
      const number = parse(field.value);
      const fine = number > data.start && Number.isFinite(number);
      field.setAttribute("aria-invalid", String(!fine));
      refusal.textContent = fine ? "" : "The end of the run is a time after its start";
      if (fine) app.setFinalTime(number);
    },
  });
  const refusal = element("p", { class: "refusal", role: "alert" });
  const row = element(
    "div",
    { class: "control plain" },
    element("label", { for: "final-time", title: "Where a run ends" }, "end of the run"),
    field,
    element("span", { class: "unit" }, "s"),
    refusal,
  );
  return { row, update: () => (field.value = format(app.values.tFinal, 6)) };
}

/** Make the fold with all other values, which a search narrows. */
function makeRest(groups, count) {
  const search = element("input", {
    type: "search",
    placeholder: "Search",
    "aria-label": "Search the other values",
    oninput: () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const group of groups) {
        for (const row of group.querySelectorAll(".control")) {
          const text = `${row.dataset.path} ${row.textContent}`.toLowerCase();
          row.hidden = !words.every((word) => text.includes(word));
        }
        group.hidden = [...group.querySelectorAll(".control")].every((row) => row.hidden);
      }
    },
  });
  const plural = count === 1 ? "One more value" : `${count} more values`;
  return element("details", { class: "rest" }, element("summary", {}, plural), search, groups);
}

/** Bring the controls of what is selected into sight. */
function pointAt(place, path) {
  for (const row of place.querySelectorAll(".control[data-path]")) {
    const { path: own } = row.dataset;
    const meant = path !== null && (own === path || own.startsWith(`${path}.`));
    row.classList.toggle("meant", meant);
  }
  const first = place.querySelector(".meant");
  if (first === null) return;
  const fold = first.closest("details");
  if (fold && !place.querySelector("fieldset > .meant:not(details .meant)")) fold.open = true;
  first.scrollIntoView({ block: "nearest" });
}
