// The diagram of a page: folded and unfolded, with what is inside, and the values of its signals.
//
// All drawings come from Python (`diagram_data.py` says how). Unfolding a block chooses the drawing
// in which it is unfolded in place; where there is none, it shows the inside of the block alone.

const MOST_LINES = 6; // of one signal in a chart
const DIAGRAM_KEYS = "Arrow keys pan, plus and minus zoom, zero fits; Enter selects a block, Space unfolds it.";

let diagrams = 0; // on this page

/** Put a diagram into an element. */
function mountDiagram(place, data, app) {
  const id = `diagram-${++diagrams}`;
  const words = makeWords(data, app);
  const { things } = words;
  const views = new Map(data.views.map((view) => [viewKey(view.focus, view.open), view]));
  let focus = data.views[0].focus;
  let open = [];
  let selected = null;

  const act = {
    focus: () => focus,
    isOpen: (number) => open.includes(number),
    isPlotted: (thing) => componentNames(thing).some((name) => app.shown.includes(name)),
    select,
    fold,
    enter,
    plot,
  };
  const stage = makeStage(data, `${id}-keys`, { point, press, fold });
  const note = makeNote(words);
  const details = makeDetails(words, app, act);
  const crumbs = element("ol");
  const button = (name, text, onclick) =>
    element("button", { type: "button", "aria-label": name, title: name, onclick }, text);
  place.append(
    element(
      "div",
      { class: "diagram-view" },
      element(
        "div",
        { class: "bar" },
        element("nav", { "aria-label": "Where the diagram is" }, crumbs),
        makeSearch(words, `${id}-found`, find),
        element(
          "div",
          { class: "zoom" },
          button("Zoom out", "−", () => stage.zoom(stage.steps.out)),
          button("Zoom in", "+", () => stage.zoom(stage.steps.in)),
          button("Show everything", "⤢", () => stage.fit()),
        ),
      ),
      element("div", { class: "window" }, stage.svg, note.note),
      element("p", { id: `${id}-keys`, class: "keys" }, DIAGRAM_KEYS),
      details.panel,
    ),
  );

  function componentNames(thing) {
    const signal = words.signalOf(thing);
    return signal ? componentsOf(app.signals.get(signal)).slice(0, MOST_LINES) : [];
  }

  /** Show a diagram, with blocks unfolded in it. */
  function show(nextFocus, nextOpen) {
    [focus, open] = [nextFocus, nextOpen];
    note.show(null);
    stage.show(views.get(viewKey(focus, open)));
    const trail = [];
    for (let each = focus; each !== null; each = things[each].parent) trail.unshift(each);
    crumbs.replaceChildren(
      ...trail.map((each) => {
        const here = each === focus;
        const go = { type: "button", "aria-current": here ? "location" : null, onclick: () => enter(each) };
        return element("li", {}, element("button", go, things[each].name));
      }),
    );
    mark();
  }

  function fold(number) {
    if (number === null || !things[number].opens || number === focus) return;
    if (open.includes(number)) {
      show(focus, open.filter((each) => !isWithin(each, number)));
      stage.fit();
    } else if (views.has(viewKey(focus, [...open, number]))) {
      show(focus, [...open, number]);
      stage.fit(boxOf(number));
    } else return enter(number);
    refocus(number);
    if (selected !== null) details.show(selected);
  }

  function enter(number) {
    show(number, []);
    stage.fit();
    refocus(number);
    if (selected !== null) details.show(selected);
  }

  /** Keep the keys where they are when a drawing replaces another one. */
  function refocus(number) {
    if (document.activeElement !== document.body) return;
    const block = stage.svg.querySelector(`[role="button"][data-thing="${number}"]`);
    (block ?? stage.svg).focus({ preventScroll: true });
  }

  function isWithin(number, outer) {
    for (let each = number; each !== null; each = things[each].parent) if (each === outer) return true;
    return false;
  }

  function boxOf(number) {
    return views.get(viewKey(focus, open)).blocks.find(([each]) => each === number)?.slice(1) ?? null;
  }

  function plot(number) {
    const thing = things[number];
    const names = componentNames(thing);
    if (names.length === 0) return;
    if (act.isPlotted(thing)) for (const name of names) app.hide(name);
    else for (const name of names) app.show(name);
  }

  function select(number) {
    selected = number;
    details.show(number);
    app.select(number === null || things[number].kind === "fold" ? null : things[number].path);
    mark();
  }

  function press(number, isFold) {
    if (isFold) return fold(number);
    if (number !== null && number === focus) number = null;
    if (number !== null && things[number].signal) plot(number);
    select(number);
  }

  let waiting = 0;
  function point(number, event) {
    note.show(number, event);
    stage.mark("pointed", number === null ? [] : joined(number));
    clearTimeout(waiting);
    const signal = number === null ? null : words.signalOf(things[number]);
    if (signal && app.live) waiting = setTimeout(() => app.need([signal]), 250);
  }

  /** Return a port with all that carries the same signal; a block alone. */
  function joined(number) {
    const { signal, free } = things[number];
    if (!signal && !free) return [number];
    return things.flatMap((each, k) =>
      (signal && each.signal === signal) || (free && each.free === free) ? [k] : [],
    );
  }

  /** Bring something into sight, unfolding what it is in. */
  function find(number) {
    const thing = things[number];
    const block = thing.kind === "block" ? number : thing.block;
    if (block !== focus && boxOf(block) === null) reveal(block);
    const box = block === focus ? null : boxOf(block);
    stage.fit(box && [box[0] - 60, box[1] - 30, box[2] + 120, box[3] + 60], 2);
    select(number);
    stage.mark("found", [number, block]);
  }

  function reveal(block) {
    const root = data.views[0].focus;
    const around = [];
    for (let each = things[block].parent; each !== null && each !== root; each = things[each].parent) {
      around.unshift(each);
    }
    const more = [...new Set([...(focus === root ? open : []), ...around])];
    if (views.has(viewKey(root, more))) show(root, more);
    else if (views.has(viewKey(root, around))) show(root, around);
    else show(things[block].parent ?? root, []);
  }

  function mark() {
    const plotted = things.flatMap((thing, k) => (thing.signal && act.isPlotted(thing) ? [k] : []));
    stage.mark("plotted", plotted);
    stage.mark("selected", selected === null ? [] : [selected]);
    stage.mark("found", []);
  }

  const refresh = () => (note.refresh(), details.refresh());
  app.on("time", refresh);
  app.on("result", refresh);
  app.on("values", refresh);
  app.on("shown", () => (details.refresh(), mark()));
  app.on("selected", () => {
    const now = selected === null ? null : things[selected].path;
    if (app.selected === null || app.selected === now) return;
    const number = things.findIndex((thing) => thing.path === app.selected);
    if (number < 0) return;
    selected = number;
    details.show(number);
    mark();
  });

  show(focus, open);
  stage.jump();
}

/** Name a drawing: what it is of, and which blocks are unfolded in it. */
function viewKey(focus, open) {
  return [focus, ...[...open].sort((one, two) => one - two)].join(" ");
}
