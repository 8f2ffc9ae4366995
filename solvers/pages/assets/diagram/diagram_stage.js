// The drawing of a diagram in a window that pans and zooms: by mouse, touch and keys.

const CLOSEST = 5; // pixels of the screen for a point of the drawing, at most
const NATURAL = 4 / 3; // pixels for a point where there is room
const LEGIBLE = 0.7; // below that, texts are too small to begin with
const READABLE = 0.9; // so large they are then, and a part of the drawing is out of sight
const AROUND = 40; // points left of a block and above it, where it is the first one to be seen
const HEIGHTS = [220, 460]; // of the window, in pixels
const ZOOM_STEP = 1.3; // of the zoom
const DRAG_FROM = 4; // pixels, before a press becomes a move

/** Make a window in which drawings are shown; `hear` is told what people point at and press,
 *  and the element of the id `described` says which keys there are. */
function makeStage(data, described, hear) {
  const drawing = svgElement("g", { class: "drawing" });
  const svg = svgElement(
    "svg",
    {
      class: "stage",
      tabindex: 0,
      role: "group",
      "aria-label": `Diagram of ${data.name}`,
      "aria-describedby": described,
    },
    drawing,
  );
  let view = null;
  let [x, y, scale] = [0, 0, 1]; // center in the drawing, and pixels for each point of it
  let whole = true; // whether nobody has chosen what is seen, so that it follows the window
  let frame = 0;
  const size = () => [svg.clientWidth || 1, svg.clientHeight || 1];

  function place(nextX, nextY, nextScale) {
    const [left, top, width, height] = view.box;
    const [across, down] = size();
    scale = clamped(nextScale, [Math.min(wholeScale(), 0.2), CLOSEST]);
    x = clamped(nextX, [left, left + width]);
    y = clamped(nextY, [top, top + height]);
    const [w, h] = [across / scale, down / scale];
    svg.setAttribute("viewBox", [x - w / 2, y - h / 2, w, h].map((n) => n.toFixed(2)).join(" "));
  }

  function wholeScale(box = view.box, most = NATURAL) {
    const [across, down] = size();
    return Math.min(across / box[2], down / box[3], most);
  }

  function glide(toX, toY, toScale) {
    cancelAnimationFrame(frame);
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const [fromX, fromY, fromScale, begin] = [x, y, scale, performance.now()];
    const advance = (now) => {
      const share = calm ? 1 : clamped((now - begin) / 220, [0, 1]);
      const part = share * (2 - share);
      const mix = (from, to) => from + part * (to - from);
      place(mix(fromX, toX), mix(fromY, toY), fromScale * (toScale / fromScale) ** part);
      if (share < 1) frame = requestAnimationFrame(advance);
    };
    advance(performance.now());
  }

  /** Show the whole drawing, however small, or a rectangle of it with some room around. */
  function fit(box = null, most = NATURAL) {
    whole = false;
    if (box) glide(...legible([box[0] - 16, box[1] - 24, box[2] + 32, box[3] + 40], most));
    else glide(view.box[0] + view.box[2] / 2, view.box[1] + view.box[3] / 2, wholeScale());
  }

  /** Return center and scale that show a rectangle, or as much from its corner as can be read.
   *  Where only wires are in that corner, it is shown from its first block. */
  function legible(box, most = NATURAL) {
    const fitting = wholeScale(box, most);
    const next = fitting < LEGIBLE ? READABLE : fitting;
    const spans = size().map((length, side) => Math.min(length / next, box[side + 2]));
    const block = firstBlock(box);
    const center = spans.map((span, side) => {
      const [begin, end] = [box[side], box[side] + box[side + 2] - span];
      const seen = !block || block[side] + Math.min(block[side + 2], span - AROUND) < begin + span;
      return (seen ? begin : Math.min(block[side] - AROUND, end)) + span / 2;
    });
    return [...center, next];
  }

  /** Return the rectangle of the leftmost block in a rectangle, of several the uppermost. */
  function firstBlock([left, top, width, height]) {
    const within = ([, x, y]) => x >= left && y >= top && x < left + width && y < top + height;
    const closed = view.blocks.filter((block) => !view.open.includes(block[0]) && within(block));
    closed.sort((one, other) => one[1] - other[1] || one[2] - other[2]);
    return closed[0]?.slice(1);
  }

  function zoom(factor, at = null) {
    cancelAnimationFrame(frame);
    whole = false;
    const [across, down] = size();
    const [dx, dy] = at ? [at[0] - across / 2, at[1] - down / 2] : [0, 0];
    const next = clamped(scale * factor, [Math.min(wholeScale(), 0.2), CLOSEST]);
    place(x + dx / scale - dx / next, y + dy / scale - dy / next, next);
  }

  function pan(dx, dy) {
    cancelAnimationFrame(frame);
    whole = false;
    place(x - dx / scale, y - dy / scale, scale);
  }

  const pointers = new Map();
  let moved = false;
  const spot = (event) => {
    const box = svg.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  svg.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    if (pointers.size === 0) moved = false;
    pointers.set(event.pointerId, spot(event));
  });
  svg.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) {
      if (event.pointerType !== "touch") hear.point(thingAt(event.target), event);
      return;
    }
    const now = spot(event);
    const [dx, dy] = [now[0] - before[0], now[1] - before[1]];
    if (!moved && Math.hypot(dx, dy) < DRAG_FROM) return;
    if (!moved) hear.point(null, event);
    moved = true;
    svg.setPointerCapture(event.pointerId);
    if (pointers.size === 2) {
      const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
      const reach = (point) => Math.hypot(point[0] - other[0], point[1] - other[1]) || 1;
      zoom(reach(now) / reach(before), other);
    } else pan(dx, dy);
    pointers.set(event.pointerId, now);
  });
  for (const end of ["pointerup", "pointercancel", "pointerleave"]) {
    svg.addEventListener(end, (event) => pointers.delete(event.pointerId));
  }
  svg.addEventListener("pointerleave", (event) => hear.point(null, event));
  svg.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey && !svg.contains(document.activeElement)) return;
      event.preventDefault();
      zoom(Math.exp(-clamped(event.deltaY, [-200, 200]) / 300), spot(event));
    },
    { passive: false },
  );
  let presses = [null, null]; // the last two things
  svg.addEventListener("click", (event) => {
    if (moved) return;
    const isFold = event.target.closest("[data-fold]") !== null;
    presses = [presses[1], isFold ? null : thingAt(event.target)];
    hear.press(thingAt(event.target), isFold);
  });
  svg.addEventListener("dblclick", () => presses[0] === presses[1] && hear.fold(presses[1]));
  svg.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    const thing = thingAt(event.target);
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (moves[event.key]) pan(...moves[event.key]);
    else if (event.key === "+" || event.key === "=") zoom(ZOOM_STEP);
    else if (event.key === "-") zoom(1 / ZOOM_STEP);
    else if (event.key === "0") fit();
    else if (event.key === "Escape") hear.press(null, false);
    else if (event.key === "Enter" && thing !== null) hear.press(thing, false);
    else if (event.key === " " && thing !== null) hear.fold(thing);
    else return;
    event.preventDefault();
  });
  svg.addEventListener("focusin", (event) => {
    const thing = thingAt(event.target);
    if (thing === null || !event.target.matches(":focus-visible")) return;
    const [, left, top, width, height] = view.blocks.find(([number]) => number === thing);
    const [across, down] = size().map((length) => length / scale / 2);
    const seen = Math.abs(left + width / 2 - x) < across && Math.abs(top + height / 2 - y) < down;
    if (!seen) glide(left + width / 2, top + height / 2, scale);
  });
  new ResizeObserver(() => {
    if (!view) return;
    stretch();
    if (whole) jump();
    else place(x, y, scale);
  }).observe(svg);

  function jump() {
    place(...legible(view.box));
  }

  /** Make the window as high as the drawing needs it at its width. */
  function stretch() {
    const [, , width, height] = view.box;
    const needed = height * Math.min(NATURAL, size()[0] / width);
    svg.style.height = `${Math.round(clamped(needed, HEIGHTS))}px`;
  }

  return {
    svg,
    zoom,
    fit,
    steps: { in: ZOOM_STEP, out: 1 / ZOOM_STEP },
    /** Draw a view in the place of the one before. */
    show(next) {
      view = next;
      stretch();
      drawing.replaceChildren(...drawnView(view, data));
      place(x, y, scale);
    },
    jump,
    /** Let exactly these things have a class. */
    mark(name, numbers) {
      for (const node of drawing.querySelectorAll(`.${name}`)) node.classList.remove(name);
      for (const number of numbers) {
        for (const node of drawing.querySelectorAll(`[data-thing="${number}"]`)) {
          node.classList.add(name);
        }
      }
    },
  };
}

/** Return the number of the thing that an element of the drawing is about, or null. */
function thingAt(target) {
  const number = target.closest("[data-thing]")?.dataset.thing;
  return number === undefined ? null : Number(number);
}

/** Make the elements of a view, from back to front. */
function drawnView(view, data) {
  const color = (name) => (name ? `var(--diagram-${name}, ${data.colors[name]})` : "none");
  const boxes = new Set();
  const shapes = view.shapes.flatMap(([thing, kind, ...look]) => {
    const about = thing === null ? {} : { thing };
    if (kind === "text") {
      const [text, x, y, size, anchor, fill, bold] = look;
      const style = { fill: color(fill), fontSize: `${size}px`, fontWeight: bold ? 700 : null };
      return [svgElement("text", { x, y, "text-anchor": anchor, data: about, style }, text)];
    }
    const [d, fill, stroke, width] = look;
    const style = { fill: color(fill), stroke: color(stroke), strokeWidth: width };
    const path = svgElement("path", { d, class: kind, data: about, style });
    if (kind === "wire" && stroke) return [path, svgElement("path", { d, class: "reach", data: about })];
    if (data.things[thing]?.kind !== "block" || boxes.has(thing)) return [path];
    boxes.add(thing);
    return [describedBlock(path, data.things[thing], view.open.includes(thing))];
  });
  const ports = view.ports.map(([thing, x, y, width, height]) =>
    svgElement("rect", { class: "reach", x, y, width, height, rx: 3, data: { thing } }),
  );
  const folds = view.blocks
    .filter(([thing]) => data.things[thing].opens)
    .map(([thing, x, y]) => foldButton(thing, x + 14, y, view.open.includes(thing)));
  return [...shapes, ...ports, ...folds];
}

/** Let keys and screen readers come to a block. */
function describedBlock(path, block, open) {
  path.setAttribute("tabindex", 0);
  path.setAttribute("role", "button");
  path.setAttribute("aria-label", `${block.name}, ${block.caption}`);
  if (block.opens) path.setAttribute("aria-expanded", open);
  return path;
}

/** Make the small sign on the edge of a block that folds or unfolds it. */
function foldButton(thing, x, y, open) {
  const bars = open ? "M-3.2,0H3.2" : "M-3.2,0H3.2M0,-3.2V3.2";
  return svgElement(
    "g",
    { class: "opener", transform: `translate(${x} ${y})`, data: { thing, fold: "" } },
    svgElement("circle", { r: 11, class: "reach" }),
    svgElement("circle", { r: 6.2, class: "disk" }),
    svgElement("path", { d: bars }),
  );
}
