// Values that leave the page: as address, Python, TOML and CSV.

const KINDS = ["parameters", "initial", "inputs"];
const END = "~t_final"; // in addresses; no path looks like it
const RUN = "~run";

/** List what differs in values from how the page came: [kind, path, numbers]. */
function changes(app, values) {
  return KINDS.flatMap((kind) =>
    Object.entries(values[kind])
      .filter(([path, numbers]) => !same(numbers, app.start[kind][path]))
      .map(([path, numbers]) => [kind, path, numbers]),
  );
}

function same(some, others) {
  return some.length === others.length && some.every((number, k) => Object.is(number, others[k]));
}

/** Write the changed values, and the name of their run if it has one, as the fragment of an address. */
function fragmentOf(app, values = app.values, name = null) {
  const parts = changes(app, values).map(([, path, numbers]) => [path, numbers.join(",")]);
  if (values.tFinal !== app.start.tFinal) parts.push([END, String(values.tFinal)]);
  if (name !== null) parts.push([RUN, name]);
  return parts.map((pair) => pair.map(encodeURIComponent).join("=")).join("&");
}

/** Return the values that a fragment stands for, and the parts of it that are not understood. */
function valuesOf(fragment, app) {
  const values = copied(app.start);
  const unknown = [];
  for (const part of fragment.replace(/^#/, "").split("&").filter(Boolean)) {
    const [path, text] = decoded(part);
    const numbers = text.split(",").map(parse);
    const kind = KINDS.find((each) => Object.hasOwn(values[each], path));
    const count = values[kind]?.[path].length ?? 1;
    const fine = numbers.length === count && !numbers.some(Number.isNaN);
    if (kind && fine) values[kind][path] = numbers;
    else if (path === END && fine) values.tFinal = numbers[0];
    else if (path === RUN) app.nameNext(text);
    else unknown.push(path);
  }
  return [values, unknown];
}

function decoded(part) {
  try {
    const [path, text = ""] = part.split("=").map(decodeURIComponent);
    return [path, text];
  } catch {
    return [part, ""]; // not written by us
  }
}

/** Take the values of the address, and keep the address at the values from now on. */
function followAddress(app) {
  const read = () => {
    if (location.hash.replace(/^#/, "") === fragmentOf(app)) return;
    const [values, unknown] = valuesOf(location.hash, app);
    app.restore(values);
    const names = unknown.join(", ");
    if (names) tell(`The address names what this page does not have: ${names}`);
  };
  let timer = 0;
  app.on("values", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      const fragment = fragmentOf(app);
      try {
        history.replaceState(null, "", fragment ? `#${fragment}` : location.pathname);
      } catch {
        // inside of a notebook there is no address
      }
    }, 150);
  });
  addEventListener("hashchange", read);
  read();
}

/** Send changed values to the notebook around the page once it has sent its own, which the page takes. */
function followNotebook(app) {
  const kinds = ["parameters", "initial", "inputs"];
  let known = null; // values as the notebook knows them
  function post() {
    if (known === null || app.moving) return;
    const changed = kinds.flatMap((kind) =>
      Object.entries(app.values[kind]).filter(([path, numbers]) => !same(numbers, known[kind][path])),
    );
    const { tFinal } = app.values;
    if (changed.length === 0 && tFinal === known.tFinal) return;
    known = app.values;
    parent.postMessage({ values: Object.fromEntries(changed), tFinal }, "*");
  }
  app.on("values", post);
  app.on("runs", post); // a slider has stopped
  addEventListener("message", ({ source, data: told }) => {
    if (source !== parent || source === window) return;
    if (typeof told?.refused === "string") showRefusal(told.refused);
    if (typeof told?.kernel !== "object") return;
    const next = copied(app.values);
    for (const kind of kinds) {
      for (const path of Object.keys(next[kind])) next[kind][path] = told.kernel[path] ?? next[kind][path];
    }
    const isNew = kinds.some((kind) => Object.keys(next[kind]).some((path) => !same(next[kind][path], app.values[kind][path])));
    known = next;
    if (isNew) app.restore(next);
  });
}

/** Say what the kernel refuses; the next run of the page hides it. */
function showRefusal(text) {
  const alert = document.getElementById("alert");
  alert.hidden = false;
  alert.classList.remove("mild");
  alert.textContent = `Python has refused these values, and keeps its own: ${text}`;
}

/** List the values that a program has to set: [path, number or rows of numbers]. */
function settings(data, app) {
  const changed = new Set(data.changed);
  const shapes = new Map(app.info.parameters.map((each) => [each.path, each.shape]));
  const flat = (numbers) => (numbers.length > 1 ? [numbers.length] : []);
  return KINDS.flatMap((kind) =>
    Object.entries(app.values[kind])
      .filter(([path, numbers]) => changed.has(path) || !same(numbers, app.start[kind][path]))
      .map(([path, numbers]) => [path, nested(numbers, shapes.get(path) ?? flat(numbers))]),
  );
}

/** Return numbers in rows of a shape. */
function nested(numbers, shape) {
  if (shape.length === 0) return numbers[0];
  const size = numbers.length / shape[0];
  return Array.from({ length: shape[0] }, (_, k) =>
    nested(numbers.slice(k * size, (k + 1) * size), shape.slice(1)),
  );
}

/** Write a number, or rows of them, so that it is read back with every bit. */
function literal(value, infinity) {
  if (Array.isArray(value)) return `[${value.map((each) => literal(each, infinity)).join(", ")}]`;
  if (!Number.isFinite(value)) return infinity(value);
  const text = Object.is(value, -0) ? "-0" : String(value);
  return /[.e]/.test(text) ? text : `${text}.0`;
}

function asPython(data, app) {
  const infinity = (value) => `float("${value > 0 ? "" : "-"}inf")`;
  const lines = settings(data, app).map(
    ([path, value]) => `context.set(${JSON.stringify(path)}, ${literal(value, infinity)})`,
  );
  const end = literal(app.values.tFinal);
  return [
    "import flexure as fx",
    "",
    `context = ${data.variable}.create_default_context()`,
    ...(data.start ? [`context.time = ${literal(data.start)}`] : []),
    ...lines,
    ...(app.result?.assembled ?? []).map(
      (path) => `${data.variable}${path && `.get_system(${JSON.stringify(path)})`}.assemble(context)`,
    ),
    `result = fx.simulate(${[data.variable, end, "context=context", ...data.options].join(", ")})`,
    "",
  ].join("\n");
}

function asToml(data, app) {
  const infinity = (value) => `${value > 0 ? "" : "-"}inf`;
  const lines = settings(data, app).map(
    ([path, value]) => `${JSON.stringify(path)} = ${literal(value, infinity)}`,
  );
  const how = `# flexure run MODEL --to ${literal(app.values.tFinal)} --params FILE`;
  return [how, ...lines, ""].join("\n");
}

/** Write the signals of the charts as a table, in the units of the model. */
function asCsv(app) {
  const { time, signals } = app.result;
  const columns = app.shown.flatMap((name) => {
    const signal = app.signals.get(pathOf(name));
    const values = signals[signal.path];
    return values ? [[name, component(values, signal.size, componentAt(name, signal))]] : [];
  });
  const rows = Array.from(time, (t, i) => [t, ...columns.map(([, values]) => values[i])]);
  return asRows([["time", ...columns.map(([name]) => name)], ...rows]);
}

/** Write rows as CSV. */
function asRows(rows) {
  const written = (each) => (/[",\n]/.test(each) ? `"${each.replace(/"/g, '""')}"` : each);
  return [...rows.map((row) => row.map(written).join(",")), ""].join("\n");
}

/** Return the address that brings values back. */
function linkOf(app, values = app.values, name = null) {
  return `#${fragmentOf(app, values, name)}`;
}

/** Copy the address of the page with a fragment; in a frame without an address, say what to do. */
function copyLink(fragment) {
  const address = location.href.split("#")[0];
  const told = "This frame has no address. Copied what to append to that of the saved page";
  if (address.startsWith("about:")) copy(fragment, told);
  else copy(`${address}${fragment}`, "Copied the link");
}

/** Put the buttons that share values into an element. */
function mountSharing(place, data, app) {
  const button = (name, onclick) => element("button", { type: "button", onclick }, name);
  if (app.live) {
    place.append(
      button("Reset", () => app.reset()),
      button("Compare from here", () => app.current && (app.compareWith(app.current), tell("Dotted curves show the values of now"))),
      button("Copy link", () => copyLink(linkOf(app))),
      button("Python", () => showText("These values in Python", asPython(data, app))),
      button("TOML", () => showText("These values for flexure run --params", asToml(data, app))),
    );
  }
  place.append(
    button("CSV", () => app.result && download(`${data.name}.csv`, asCsv(app), "text/csv")),
  );
}

/** Show a text that can be copied. */
function showText(title, text) {
  const close = () => dialog.close();
  const area = element("pre", { tabindex: 0 }, text);
  const copying = { type: "button", class: "main", onclick: () => copy(text, "Copied the text") };
  const dialog = element(
    "dialog",
    { "aria-label": title, onclose: () => dialog.remove() },
    element("h2", {}, title),
    area,
    element(
      "p",
      { class: "buttons" },
      element("button", copying, "Copy"),
      element("button", { type: "button", onclick: close }, "Close"),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
}

async function copy(text, told) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = element("textarea", { class: "aside" });
    area.value = text;
    (document.querySelector("dialog[open]") ?? document.body).append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  tell(told);
}
