// What a diagram says in words: beside the pointer, below the drawing, and to those who search.

const MOST_ROWS = 12; // of what a search finds
const MOST_NAMES = 8; // of folded ports beside the pointer
const MOST_NUMBERS = 4; // of a vector in a line

/** Return what is needed to speak about the things of a diagram. */
function makeWords(data, app) {
  const { things } = data;
  const signalOf = (thing) => (thing.signal && app.signals.has(thing.signal) ? thing.signal : null);

  /** Return the numbers that a port or a parameter has at the time of the cursor, or null. */
  function numbersOf(thing) {
    if (thing.kind === "parameter") return app.values.parameters[thing.path] ?? null;
    if (thing.free) return app.values.inputs[thing.free] ?? null;
    return signalOf(thing) && app.at(thing.signal);
  }

  function valueText(thing) {
    const numbers = numbersOf(thing);
    if (numbers === null || numbers.length === 0) return "";
    const unit = thing.unit ? ` ${unitText(thing.unit)}` : "";
    const some = numbers.slice(0, MOST_NUMBERS).map((number) => format(number));
    if (numbers.length === 1) return some[0] + unit;
    return `(${some.join(", ")}${numbers.length > MOST_NUMBERS ? ", …" : ""})${unit}`;
  }

  function kindText(thing) {
    if (thing.kind === "block") return thing.caption;
    if (thing.kind === "fold") {
      const names = thing.ports.slice(0, MOST_NAMES).map((port) => things[port].name);
      return names.join(", ") + (thing.ports.length > MOST_NAMES ? ", …" : "");
    }
    const parts = [thing.kind];
    if (thing.kind !== "parameter") {
      parts.push(thing.size === null ? "abstract" : `size ${thing.size}`);
    }
    if (thing.unit) parts.push(unitText(thing.unit));
    return parts.join(", ");
  }

  const pathText = (thing) => thing.path || thing.name;
  return { things, signalOf, valueText, kindText, pathText };
}

/** Make the note beside the pointer. */
function makeNote(words) {
  const note = element("div", { class: "note", role: "tooltip", hidden: true });
  let shown = null;
  let value = null;
  return {
    note,
    show(number, event) {
      if (number !== shown) {
        shown = number;
        note.hidden = number === null;
        if (number === null) return;
        const thing = words.things[number];
        value = element("p", { class: "value" });
        const doc = thing.doc ? element("p", { class: "doc" }, thing.doc) : null;
        const title = thing.kind === "fold" ? thing.name : words.pathText(thing);
        note.replaceChildren(
          element("strong", {}, title),
          element("p", {}, words.kindText(thing)),
          ...[doc, value].filter(Boolean),
        );
        this.refresh();
      }
      if (number === null) return;
      const frame = note.parentElement.getBoundingClientRect();
      const left = event.clientX - frame.left + 14;
      const top = event.clientY - frame.top + 16;
      note.style.left = `${Math.max(4, Math.min(left, frame.width - note.offsetWidth - 4))}px`;
      const above = top + note.offsetHeight > frame.height + 40 && top > note.offsetHeight;
      note.style.top = `${above ? top - note.offsetHeight - 28 : top}px`;
    },
    refresh() {
      if (shown === null) return;
      const text = words.valueText(words.things[shown]);
      value.textContent = text;
      value.hidden = text === "";
    },
  };
}

/** Make the panel that says everything about the selected thing, with all its ports. */
function makeDetails(words, app, act) {
  const panel = element("div", { class: "details", hidden: true });
  let live = []; // [element, thing] whose value moves
  let plotted = []; // [button, thing]

  function row(number, current) {
    const thing = words.things[number];
    const value = element("span", { class: "value" });
    live.push([value, thing]);
    const size = thing.kind === "parameter" || thing.size === 1 ? null : words.kindText(thing).split(", ")[1];
    const name = element("span", { class: "name" }, thing.name, size ? element("small", {}, size) : null);
    const line = { class: number === current ? "current" : null, title: thing.doc || null };
    if (thing.kind === "parameter" || !words.signalOf(thing)) {
      return element("li", line, name, value);
    }
    const button = element(
      "button",
      { type: "button", class: "plot", "aria-label": `Plot ${thing.path}`, onclick: () => act.plot(number) },
      name,
      value,
    );
    plotted.push([button, thing]);
    return element("li", line, button);
  }

  function list(title, numbers, current) {
    if (numbers.length === 0) return null;
    const rows = numbers.map((number) => row(number, current));
    return element("div", {}, element("h4", {}, title), element("ul", {}, rows));
  }

  function show(number) {
    [live, plotted] = [[], []];
    panel.hidden = number === null;
    if (number === null) return;
    const thing = words.things[number];
    const home = thing.kind === "block" ? number : thing.block;
    const block = words.things[home];
    const among = (kind) => {
      const all = words.things.flatMap((each, k) => (each.block === home && each.kind === kind ? [k] : []));
      return thing.kind === "fold" ? all.filter((k) => thing.ports.includes(k)) : all;
    };
    const doc = thing.doc && thing !== block ? `${thing.name}: ${thing.doc}` : block.doc;
    panel.replaceChildren(
      ...[
        element(
          "header",
          {},
          element("h3", {}, words.pathText(block), element("small", {}, block.caption)),
          block.opens && home !== act.focus()
            ? [
                element("button", { type: "button", onclick: () => act.fold(home) }, act.isOpen(home) ? "Fold" : "Unfold"),
                element("button", { type: "button", onclick: () => act.enter(home) }, "Go inside"),
              ]
            : null,
          element("button", { type: "button", "aria-label": "Close", onclick: () => act.select(null) }, "×"),
        ),
        doc ? element("p", { class: "doc" }, doc) : null,
        element(
          "div",
          { class: "lists" },
          list("Inputs", among("input"), number),
          list("Outputs", among("output"), number),
          list("Parameters", thing.kind === "fold" ? [] : among("parameter"), number),
        ),
      ].filter(Boolean),
    );
    if (app.live) app.need(live.map(([, each]) => words.signalOf(each)).filter(Boolean));
    refresh();
    const current = panel.querySelector(".current");
    const column = current?.closest(".lists > div");
    if (column) column.scrollTop = current.offsetTop - column.offsetTop - 30;
  }

  function refresh() {
    for (const [node, thing] of live) {
      const text = words.valueText(thing);
      node.textContent = text || unitText(thing.unit);
      node.classList.toggle("missing", text === "");
    }
    for (const [button, thing] of plotted) button.setAttribute("aria-pressed", act.isPlotted(thing));
  }

  return { panel, show, refresh };
}

/** Tell whether two things are called the same: a port, and one that is exported under its name. */
function isSame(one, two) {
  return one.path === two.path && one.kind === two.kind;
}

/** Make the field that finds blocks, ports and parameters by a part of their path. */
function makeSearch(words, id, go) {
  const list = element("ul", { id, role: "listbox", "aria-label": "Found", hidden: true });
  const field = element("input", {
    type: "search",
    role: "combobox",
    placeholder: "Find a block, port or parameter",
    "aria-label": "Find a block, port or parameter",
    "aria-controls": id,
    "aria-expanded": "false",
    "aria-autocomplete": "list",
    autocomplete: "off",
    spellcheck: "false",
    oninput: () => look(),
    onblur: () => close(),
    onkeydown: (event) => press(event),
  });
  let found = [];
  let at = 0;

  function look() {
    const text = field.value.trim().toLowerCase();
    const rank = ({ name, path }) => [name.toLowerCase().indexOf(text) !== 0, path.length];
    found = words.things
      .map((thing, number) => [thing, number])
      .filter(([thing]) => text && thing.path && thing.path.toLowerCase().includes(text))
      .sort(([one], [two]) => rank(one)[0] - rank(two)[0] || rank(one)[1] - rank(two)[1])
      .slice(0, 4 * MOST_ROWS)
      .filter(([thing], k, all) => k === all.findIndex(([other]) => isSame(other, thing)))
      .slice(0, MOST_ROWS);
    at = 0;
    list.replaceChildren(
      ...found.map(([thing, number], k) =>
        element(
          "li",
          { id: `${id}-${k}`, role: "option", onpointerdown: (event) => choose(event, number) },
          element("span", {}, thing.path),
          element("small", {}, thing.kind === "block" ? thing.caption : words.kindText(thing)),
        ),
      ),
      ...(text && found.length === 0 ? [element("li", { class: "none" }, "Nothing is called so")] : []),
    );
    list.hidden = text === "";
    field.setAttribute("aria-expanded", text !== "");
    point();
  }

  function point() {
    for (const [k, option] of [...list.children].entries()) option.setAttribute("aria-selected", k === at);
    if (found.length) field.setAttribute("aria-activedescendant", `${id}-${at}`);
    else field.removeAttribute("aria-activedescendant");
  }

  function choose(event, number) {
    event.preventDefault();
    close();
    go(number);
  }

  function close() {
    list.hidden = true;
    field.setAttribute("aria-expanded", "false");
  }

  function press(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && found.length) at = (at + step + found.length) % found.length;
    else if (event.key === "Enter" && found.length) return choose(event, found[at][1]);
    else if (event.key === "Escape") close();
    else return;
    if (step) event.preventDefault();
    point();
  }

  return element("div", { class: "search" }, field, list);
}
