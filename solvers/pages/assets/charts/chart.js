// One chart as SVG: axes, lines, points, and what hands do there. All charts of pages are such ones.
//
// A picture, {width, height, margin, x, y, lines, points}, is what a chart shows. x and y are
// {range, logarithmic, labels}; y.range is that of the lines when it is left out. A line is {name, x,
// y, color, width, dash, held, fill, opacity, unit, quiet}: color names a custom property, and the
// values of a quiet one are not told beside the pointer. points are {x, y, color, size, ring}.

const SERIES = 6; // colors, --series-1 and so on
const TAP = 4; // pixels that a pointer moves in a press
const REACH = 8; // pixels from a rule in which a pointer takes it
const NARROW = 1e-9; // of the range, below which nothing is zoomed in

/** Make a chart. It calls zoom(range), reset(), press(x) and hover(x or null) where they are given,
 * and move(name, x) for the rules "a" and "b", which people drag. */
function makeChart({ zoom, reset, press, hover, move } = {}) {
  const grid = svgElement("g", { class: "grid" });
  const curves = svgElement("g", { fill: "none" });
  const rules = svgElement("g");
  const band = svgElement("rect", { class: "band", y: 0, height: "100%", width: 0 });
  const area = svgElement("svg", {}, band, curves, rules);
  const spots = svgElement("g");
  const words = svgElement("g", { class: "words" });
  const face = svgElement("svg", { class: "face", "aria-hidden": "true" }, grid, area, spots, words);
  const rulesByName = new Map();
  const paths = []; // of lines, with what is below them
  let [picture, across, down, width, height] = [null, null, null, 0, 0];
  let [sizeNow, gridNow] = ["", ""]; // what is drawn, in words

  function draw(wanted) {
    picture = wanted;
    const { margin, x, y, lines, points = [] } = wanted;
    [width, height] = [wanted.width - margin.l - margin.r, wanted.height - margin.t - margin.b];
    if (!(width > 0 && height > 0)) return;
    const size = [wanted.width, wanted.height, margin.l, margin.t, width, height];
    if (String(size) !== sizeNow) {
      sizeNow = String(size);
      furnish(face, { width: wanted.width, height: wanted.height }, []);
      furnish(area, { x: margin.l, y: margin.t, width, height }, []);
    }
    across = axisScale(x.range, [0, width], x.logarithmic);
    const range = y.range ?? rangeFor(extentOf(lines, x.range, y.logarithmic), y.logarithmic);
    down = axisScale(range, [height, 0], y.logarithmic);
    drawGrid();
    drawLines(lines);
    spots.replaceChildren(...points.flatMap(spotsOf));
    for (const name of rulesByName.keys()) rule(name, rulesByName.get(name).at);
    face.data = lines; // for whoever looks at the page from outside
  }

  /** Draw axes and grid, if they are others than before. */
  function drawGrid() {
    const { margin, x, y } = picture;
    const key = JSON.stringify([across, down, margin, picture.width, picture.height, x.labels, y.labels]);
    if (key === gridNow) return;
    gridNow = key;
    const [left, top] = [margin.l, margin.t];
    const made = [];
    const line = (x1, y1, x2, y2, name) => made.push(svgElement("line", { x1, y1, x2, y2, class: name }));
    const text = (where, name) => made.push(svgElement("text", { ...where, class: name }, where.text));
    for (const tick of ticksOf(across, Math.max(2, width / 80))) {
      const u = Math.round(left + across.place(tick.value)) + 0.5;
      const name = tick.value === 0 ? "zero" : "";
      line(u, top, u, top + height, name);
      if (x.labels !== false) text({ x: u, y: top + height + 16, text: tick.text }, "across");
    }
    for (const tick of ticksOf(down, Math.max(2, height / 30))) {
      const v = Math.round(top + down.place(tick.value)) + 0.5;
      line(left, v, left + width, v, tick.value === 0 ? "zero" : "");
      if (y.labels !== false) text({ x: left - 6, y: v + 4, text: tick.text }, "down");
    }
    line(left + 0.5, top, left + 0.5, top + height, "frame");
    line(left, top + height + 0.5, left + width, top + height + 0.5, "frame");
    grid.replaceChildren(...made);
  }

  function drawLines(lines) {
    while (paths.length > lines.length) paths.pop().node.remove();
    for (const [k, each] of lines.entries()) {
      if (!paths[k]) {
        const [ground, curve] = [svgElement("path"), svgElement("path", { class: "curve" })];
        paths.push({ node: svgElement("g", {}, ground, curve), ground, curve, look: "" });
        curves.append(paths[k].node);
      }
      const { text, below } = lineText(each, across, down, width);
      const { ground, curve, look } = paths[k];
      const { name, color, width: thick, dash = "", opacity = "", fill = "" } = each;
      curve.setAttribute("d", text);
      if (below !== null || fill !== "") ground.setAttribute("d", below ?? "");
      paths[k].look = [name, color, thick, dash, opacity, fill].join();
      if (look === paths[k].look) continue;
      curve.dataset.name = name;
      furnish(curve, { style: { stroke: `var(${color})`, strokeWidth: thick, strokeDasharray: dash, opacity } }, []);
      furnish(ground, { d: below ?? "", style: { fill: fill ? `var(${fill})` : "none" } }, []);
    }
  }

  function spotsOf({ x, y, color, size, ring }) {
    const { l, t } = picture.margin;
    const style = { fill: `var(${color})`, stroke: ring ? `var(${ring})` : "none", strokeWidth: 1.5 };
    return Array.from(x, (at, k) => [l + across.place(at), t + down.place(y[k])])
      .filter(([u, v]) => u >= l - 1 && u <= l + width + 1 && Number.isFinite(v))
      .map(([cx, cy]) => svgElement("circle", { cx, cy, r: size / 2, style }));
  }

  /** Put an upright line at a place, under a name that is its class, too; null takes it away. */
  function rule(name, at) {
    if (!rulesByName.has(name)) {
      const letter = svgElement("text", { x: 3, y: 12 }, name.length > 1 ? "" : name.toUpperCase());
      const line = svgElement("g", { class: name }, svgElement("line", { y1: 0, y2: "100%" }), letter);
      rules.append(line);
      rulesByName.set(name, { line, at });
    }
    const each = rulesByName.get(name);
    each.at = at;
    const [first, last] = across?.range ?? [NaN, NaN];
    const isSeen = at !== null && at >= first && at <= last;
    each.line.style.display = isSeen ? "" : "none";
    if (isSeen) each.line.setAttribute("transform", `translate(${across.place(at).toFixed(1)})`);
  }

  /** Tell the values of lines at a place, beside an upright line there; null ends that. */
  function point(at) {
    rule("hovered", at);
    words.replaceChildren();
    if (at === null || across === null) return;
    const { margin, lines } = picture;
    const told = lines.filter((line) => !line.quiet && Number.isFinite(heightAt(line, at)));
    const u = across.place(at);
    const isLeft = u > 0.6 * width;
    const place = { x: margin.l + u + (isLeft ? -8 : 8), "text-anchor": isLeft ? "end" : "start" };
    for (const [k, line] of told.entries()) {
      const value = heightAt(line, at);
      const dot = svgElement("tspan", { style: { fill: `var(${line.color})` } }, "● ");
      const unit = unitText(line.unit ?? "");
      const text = `${line.label ? `${line.label} ` : ""}${format(value, 5)} ${unit}`.trimEnd();
      words.append(svgElement("text", { ...place, y: margin.t + 14 + 15 * k }, dot, text));
    }
  }

  const isNear = (name, at) => {
    const where = rulesByName.get(name)?.at ?? null;
    return where !== null && Math.abs(across.place(where) - at) < REACH;
  };
  listenTo(face, {
    place: (event) => event.clientX - face.getBoundingClientRect().left - (picture?.margin.l ?? 0),
    value: (pixel) => across.value(clamped(pixel, [0, width])),
    band(from, to) {
      const ends = [from, to].map((each) => clamped(each, [0, width]));
      furnish(band, { x: Math.min(...ends), width: Math.abs(ends[1] - ends[0]) }, []);
    },
    range: () => across.range,
    stretched: (shift, factor) => [0, width].map((pixel) => across.value(shift + factor * pixel)),
    pixel: (at) => across.place(at),
    isReady: () => across !== null,
    held: (at) => (move ? ["a", "b"].find((name) => isNear(name, at)) : undefined),
    move,
    ...{ zoom, reset, press, hover: hover ?? point },
  });
  return { face, draw, rule, point };
}

/** Let pointers zoom, look and tell in a chart: drag and pinch, press, hover, and twice for all. */
function listenTo(face, { place, value, pixel, band, range, stretched, isReady, held, zoom, reset, press, hover, move }) {
  const fingers = new Map(); // where pointers are that are down, by their number
  let begun = null; // where a drag has begun, in pixels
  let pinched = null; // the values under two fingers
  let dragged; // the name of the rule that is dragged, if any

  face.addEventListener("pointerdown", (event) => {
    if (!isReady() || event.button !== 0) return;
    const at = place(event);
    fingers.set(event.pointerId, at);
    face.setPointerCapture(event.pointerId);
    dragged = fingers.size === 1 ? held(at) : undefined;
    if (fingers.size === 1) begun = at;
    else [begun, pinched] = [null, [...fingers.values()].map(value)];
  });
  face.addEventListener("pointermove", (event) => {
    if (!isReady()) return;
    const at = place(event);
    if (!fingers.has(event.pointerId)) return event.pointerType === "touch" ? undefined : hover(value(at));
    fingers.set(event.pointerId, at);
    if (dragged) move(dragged, value(at));
    else if (pinched !== null && zoom) zoomTo(pinchedRange());
    else if (begun === null || Math.abs(at - begun) < TAP) return;
    else if (event.pointerType === "touch") press?.(value(at));
    else if (zoom) band(begun, at);
  });
  face.addEventListener("pointerup", (event) => {
    const at = place(event);
    if (begun !== null && fingers.size === 1 && !dragged) {
      const moved = Math.abs(at - begun) >= TAP && event.pointerType !== "touch";
      if (!moved) press?.(value(at));
      else if (zoom) zoomTo([begun, at].map(value).sort((a, b) => a - b));
    }
    end(event);
  });
  face.addEventListener("pointercancel", end);
  face.addEventListener("pointerleave", () => hover(null));
  face.addEventListener("dblclick", () => reset?.());

  function end(event) {
    fingers.delete(event.pointerId);
    band(0, 0);
    begun = null;
    if (fingers.size < 2) pinched = null;
  }
  function zoomTo([first, last]) {
    const [begin, finish] = range();
    if (last - first > NARROW * (finish - begin)) zoom([first, last]);
  }
  /** Return the range in which the values are under the fingers that were there when they came. */
  function pinchedRange() {
    const [[u, v], [a, b]] = [[...fingers.values()], pinched.map(pixel)];
    const factor = (b - a) / (v - u);
    return Math.abs(u - v) >= 10 && factor > 0 ? stretched(a - factor * u, factor) : range();
  }
}

/** Make the entry of a line in a legend: its look, a name that hides and shows it, and what follows. */
function legendItem({ name, title, color, dash, isHidden, toggle }, ...others) {
  const look = { class: dash ? "swatch dashed" : "swatch", style: { color: `var(${color})` } };
  return element(
    "li",
    { title, class: isHidden ? "muted" : null },
    element("span", { ...look, "aria-hidden": "true" }),
    element("button", { type: "button", class: "name", "aria-pressed": String(!isHidden), onclick: toggle }, name),
    others,
  );
}
