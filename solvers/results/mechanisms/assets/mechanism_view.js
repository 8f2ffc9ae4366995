// A mechanism in 3-D on a plain canvas: shaded faces painted from behind, springs, axes, a floor.
//
// `mountMechanism(element, data, app)` fills an element with the view. `data` is what Python's
// `view_data` makes: pieces and strokes that are fixed on bodies, ribbons that bend between them, with
// the paths of their stresses where they are colored by these, and for each body the path of the
// signal with its pose, twelve numbers, the rotation matrix row by row and then the position (null
// for the world). From `app` it reads `app.result.signals`, `app.at(path, time)`, `app.time` and, for
// yield strengths that people change, `app.values.parameters` if there are any, and hears of "result",
// "time" and "colors". It returns {draw, look, seen}, which the canvas has as `mechanism`, too:
// `look(azimuth, elevation)` turns the camera, and `seen()` tells where things are on the canvas, and
// in which colors, which the tests compare with poses and stresses.
//
// The camera has no perspective. Which of two convex things hides the other is told by a plane
// between them, which is a face of one of them, as in Python's `depth.py`.

const mountMechanism = (() => {
  const LIGHT = [-0.35, 0.55, 0.76].map((each, _, all) => each / Math.hypot(...all));
  const DARKEST = 0.7, EDGE = 0.7, COILS = 8, RADIUS = 0.018, TRIAD = 0.06, PIN = 0.02, ARROW = 0.22;
  const TOUCHING = 1e-4, EDGE_ON = 1e-9, MARGIN = 44, CELLS = 5;
  const SAMPLES = 60; // of a motion, from which its reach is found
  const HEIGHT = "clamp(300px, 48vh, 560px)"; // where the page gives none
  const BONE = "#1f5a99", SPRING = "#c8641e", FORCE = "#b22222", TRACE = "#7b4fa3";
  const TRIADS = {x: "#b22222", y: "#2e7d4f", z: "#1f5a99"};
  const WORLD = [1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0];
  const SORTED = new Set(["bone", "dot", "spring", "damper", "damped spring", "cable"]);
  const DIRECTIONS = []; // in which the farthest points of a motion are kept
  for (let elevation = -90; elevation <= 90; elevation += 22.5) {
    for (let azimuth = 0; azimuth < 360; azimuth += 22.5) {
      DIRECTIONS.push([azimuth, elevation].map((each) => each * Math.PI / 180));
    }
  }
  const STRESSES = [["MPa", 1e6], ["kPa", 1e3], ["Pa", 1]], BAR = 150;
  const VIEWS = {corner: [-60, 20], xz: [-90, 0], yz: [0, 0], xy: [-90, 90]};

  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const turned = (R, p) => [
    R[0] * p[0] + R[1] * p[1] + R[2] * p[2],
    R[3] * p[0] + R[4] * p[1] + R[5] * p[2],
    R[6] * p[0] + R[7] * p[1] + R[8] * p[2],
  ];
  const placed = (pose, p) => {
    const q = turned(pose, p);
    return [q[0] + pose[9], q[1] + pose[10], q[2] + pose[11]];
  };

  const farthest = DIRECTIONS.map(([a, e]) =>
    [Math.cos(e) * Math.cos(a), Math.cos(e) * Math.sin(a), Math.sin(e)]);

  /** The points of a cloud that are farthest in some direction. */
  function outermost(points) {
    const found = new Set();
    for (const direction of farthest) {
      let best = -Infinity, chosen = null;
      for (const p of points) {
        const reached = dot(p, direction);
        if (reached > best) [best, chosen] = [reached, p];
      }
      if (chosen) found.add(chosen);
    }
    return [...found];
  }

  /** The rows to the right, upwards and to the viewer, as nine numbers. */
  function cameraAxes(azimuth, elevation) {
    const a = azimuth * Math.PI / 180, e = elevation * Math.PI / 180;
    const ca = Math.cos(a), sa = Math.sin(a), ce = Math.cos(e), se = Math.sin(e);
    return [-sa, ca, 0, -ca * se, -sa * se, ce, ca * ce, sa * ce, se];
  }

  function normalOf(corners) {
    const [a, b, c] = corners;
    const away = (p) => p.map((each, k) => each - a[k]);
    return unit(cross(away(b), away(c)));
  }

  function cross(a, b) {
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
  }

  function unit(vector) {
    const length = Math.hypot(...vector) || 1;
    return vector.map((each) => each / length);
  }

  function shade(color, share) {
    const parts = [1, 3, 5].map((k) => Math.round(share * parseInt(color.slice(k, k + 2), 16)));
    return `rgb(${parts.join(",")})`;
  }

  // Flexures, bent as in Python's `ribbons.py` -----------------------------------------------------

  /** The corners of all sections of a ribbon in the world. */
  function sections({bodies, frames, length, outlines, slabs}, poses) {
    const held = frames.map(([place, ...directions], k) => {
      const pose = poses[bodies[k]];
      return [placed(pose, place), ...directions.map((each) => turned(pose, each))];
    });
    const found = [];
    for (let k = 0; k + 1 < held.length; k++) {
      const [p, t, z] = held[k], [q, u, w] = held[k + 1];
      for (let n = k ? 1 : 0; n <= slabs; n++) {
        const s = n / slabs, r = 1 - s;
        const line = p.map((each, i) =>
          each + (3 - 2 * s) * s * s * (q[i] - each) + length * s * r * (r * t[i] - s * u[i]));
        const along = unit(p.map((each, i) =>
          6 * s * r * (q[i] - each) + length * (r * (1 - 3 * s) * t[i] - s * (2 - 3 * s) * u[i])));
        const wide = z.map((each, i) => r * each + s * w[i]), share = dot(along, wide);
        const across = unit(wide.map((each, i) => each - share * along[i])), y = cross(across, along);
        const outline = outlines[Math.min(found.length, outlines.length - 1)];
        found.push(outline.map(([b, c]) => line.map((each, i) => each + b * y[i] + c * across[i])));
      }
    }
    return found;
  }

  /** The stress of each slab, from what is known of it at equal distances along each segment. */
  function stressesOf({bodies, slabs}, known) {
    const segments = bodies.length - 1, each = known.length / segments, last = each - 1;
    return Array.from({length: segments * slabs}, (_, n) => {
      const segment = Math.floor(n / slabs), place = last * (n % slabs + 0.5) / slabs;
      const low = Math.max(0, Math.min(Math.floor(place), last - 1)), share = place - low;
      const at = (k) => known[segment * each + Math.min(k, last)];
      return (1 - share) * at(low) + share * at(low + 1);
    });
  }

  /** The slabs of a ribbon, as pieces that are fixed on the world; with colors, unshaded. */
  function slabsOf(ribbon, poses, colors) {
    const rings = sections(ribbon, poses), around = rings[0].length, last = rings.length - 2;
    const ring = rings[0].map((_, k) => k), start = [...ring].reverse(), end = ring.map((k) => around + k);
    const sides = ring.map((k) => {
      const next = (k + 1) % around;
      return [k, next, around + next, around + k];
    });
    return rings.slice(1).map((far, number) => {
      const vertices = [...rings[number], ...far];
      const planes = [...sides, start, end].map((face) => {
        const n = normalOf(face.map((k) => vertices[k]));
        return [...n, Math.max(...vertices.map((p) => dot(n, p)))];
      });
      const faces = [...sides, ...(number ? [] : [start]), ...(number === last ? [end] : [])];
      const color = colors ? colors[number] : ribbon.color;
      return {body: ribbon.bodies[0], vertices, faces, outlined: 0, color, planes, flat: Boolean(colors)};
    });
  }

  // What is in front of what ---------------------------------------------------------------------

  /** How far b lies beyond the best face of a, and whether that face looks at the viewer. */
  function separation(a, b) {
    let apart = -Infinity, sign = 0;
    for (const [x, y, z, distance] of a.planes) {
      let nearest = Infinity;
      for (const p of b.hull) {
        nearest = Math.min(nearest, x * p[0] + y * p[1] + z * p[2] - distance);
        if (nearest <= apart) break;
      }
      if (nearest > apart) {
        apart = nearest;
        sign = Math.abs(z) > EDGE_ON ? Math.sign(z) : 0;
      }
    }
    return [apart, sign];
  }

  /** 1 where b is in front of a, -1 where it is behind, 0 where it does not matter. */
  function inFront(a, b, touching) {
    const overlap = [0, 1].every((k) => a.low[k] < b.high[k] && b.low[k] < a.high[k]);
    const flat = [a, b].map((each) => each.planes.length === 0);
    if (!overlap || (flat[0] && flat[1])) return 0;
    const [there, front] = separation(a, b), [back, behind] = separation(b, a);
    const best = Math.max(there, back);
    if (best < -touching && flat[0] !== flat[1]) return flat[1] ? 1 : -1;
    return there >= back ? front : -behind;
  }

  function bounded(thing) {
    thing.low = [0, 1, 2].map((k) => Math.min(...thing.hull.map((p) => p[k])));
    thing.high = [0, 1, 2].map((k) => Math.max(...thing.hull.map((p) => p[k])));
    thing.depth = thing.hull.reduce((sum, p) => sum + p[2], 0) / thing.hull.length;
    return thing;
  }

  /** The numbers of things, those behind first. */
  function paintingOrder(things) {
    const low = [0, 1, 2].map((k) => Math.min(...things.map((each) => each.low[k])));
    const high = [0, 1, 2].map((k) => Math.max(...things.map((each) => each.high[k])));
    const touching = TOUCHING * Math.max(...high.map((each, k) => each - low[k]));
    const waiting = things.map(() => 0), hiddenBy = things.map(() => []);
    for (let i = 0; i < things.length; i++) {
      for (let j = i + 1; j < things.length; j++) {
        const front = inFront(things[i], things[j], touching);
        if (front === 0) continue;
        const [back, fore] = front > 0 ? [i, j] : [j, i];
        hiddenBy[back].push(fore);
        waiting[fore] += 1;
      }
    }
    const left = new Set(things.keys()), order = [];
    while (left.size) {
      const ready = [...left].filter((k) => waiting[k] === 0);
      const candidates = ready.length ? ready : [...left];
      const chosen = candidates.reduce((a, b) => (things[b].depth < things[a].depth ? b : a));
      left.delete(chosen);
      for (const each of hiddenBy[chosen]) waiting[each] -= 1;
      order.push(chosen);
    }
    return order;
  }

  // Lines between two points of the picture ------------------------------------------------------

  function alongAcross([a, b]) {
    const d = [b[0] - a[0], b[1] - a[1]], length = Math.hypot(...d);
    const along = length > 0 ? d.map((each) => each / length) : d;
    return (x, y) => [
      a[0] + x * length * along[0] - y * along[1],
      a[1] + x * length * along[1] + y * along[0],
    ];
  }

  function coil(ends, radius) {
    const at = alongAcross(ends), length = Math.hypot(ends[1][0] - ends[0][0], ends[1][1] - ends[0][1]);
    const reach = length > 0 ? Math.min(0.6 * radius / length, 0.2 / COILS) : 0;
    const line = [ends[0]];
    for (let k = 0; k <= 16 * COILS; k++) {
      const share = k / (16 * COILS), angle = 2 * Math.PI * COILS * share;
      line.push(at(0.12 + 0.76 * share + reach * (Math.cos(angle) - 1), radius * Math.sin(angle)));
    }
    return [[...line, ends[1]]];
  }

  function dashpot(ends, radius) {
    const at = alongAcross(ends), r = radius;
    const lines = [
      [[0, 0], [0.35, 0]], [[0.65, r], [0.35, r], [0.35, -r], [0.65, -r]],
      [[0.52, 0.8 * r], [0.52, -0.8 * r]], [[0.52, 0], [1, 0]],
    ];
    return lines.map((line) => line.map(([x, y]) => at(x, y)));
  }

  function niceStep(extent) {
    const rough = extent / CELLS, power = 10 ** Math.floor(Math.log10(rough));
    const off = (step) => Math.abs(Math.log(step * power / rough));
    return [1, 2, 5, 10].reduce((a, b) => (off(b) < off(a) ? b : a)) * power;
  }

  // The view -------------------------------------------------------------------------------------

  return function mount(element, data, app) {
    const canvas = document.createElement("canvas");
    const context = canvas.getContext("2d");
    const bar = document.createElement("div");
    const camera = {azimuth: data.camera[0], elevation: data.camera[1], zoom: 1, pan: [0, 0]};
    let reach = null, axes = null, shown = {faces: [], order: [], bodies: []}, ribbonOf = () => null;

    canvas.tabIndex = 0;
    canvas.setAttribute("role", "img");
    canvas.setAttribute(
      "aria-label",
      `${data.name} in 3-D. Arrow keys turn it, plus and minus zoom, with Shift arrows move it, 0 resets.`,
    );
    canvas.style.cssText = "display:block;width:100%;height:100%;touch-action:none;cursor:grab";
    bar.style.cssText = "position:absolute;top:4px;right:4px;display:flex;gap:4px";
    for (const [name, angles] of Object.entries(VIEWS)) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      button.setAttribute("aria-label", `View ${name}`);
      button.style.cssText = "font:inherit;font-size:12px;padding:2px 8px;cursor:pointer";
      button.addEventListener("click", () => { reset(); look(...angles); });
      bar.append(button);
    }
    element.style.position = "relative";
    if (element.clientHeight < 60) element.style.height = HEIGHT;
    element.append(canvas, bar);

    const color = (name, otherwise) =>
      getComputedStyle(element).getPropertyValue(name).trim() || otherwise;

    /** The pose of a body at the cursor's time. */
    const poseOf = (body) => {
      const path = data.signals[body];
      return path === null ? WORLD : app.at(path, app.time);
    };

    /** Poses of all bodies at up to so many samples of the result, one list for each sample. */
    function motion(most) {
      const paths = data.signals.filter((path) => path !== null);
      const held = app.result && paths.every((path) => app.result.signals[path]);
      if (!held) return [];
      const count = paths.length ? app.result.signals[paths[0]].length / 12 : 1;
      const stride = Math.max(1, Math.ceil(count / most)), found = [];
      for (let k = 0; k < count; k = k + stride < count || k === count - 1 ? k + stride : count - 1) {
        found.push(data.signals.map((path) =>
          path === null ? WORLD : app.result.signals[path].subarray(12 * k, 12 * k + 12)));
      }
      return found;
    }

    /** Find what the whole motion reaches, and the paths of traced points. */
    function measure() {
      const poses = motion(SAMPLES);
      if (!poses.length) return;
      const points = [];
      for (const row of poses) {
        for (const {body, reach: outer} of data.pieces) {
          for (const p of outer) points.push(placed(row[body], p));
        }
        for (const ribbon of data.ribbons) points.push(...sections(ribbon, row).flat());
        for (const {kind, bodies, points: ends} of data.strokes) {
          if (!(kind in TRIADS)) ends.forEach((p, k) => points.push(placed(row[bodies[k]], p)));
        }
        row.forEach((pose, body) => { if (body) points.push([pose[9], pose[10], pose[11]]); });
      }
      // While people change values the frame only grows, so that the picture keeps still.
      const outer = outermost([...points, ...(reach ? reach.outer : [])]);
      const low = [0, 1, 2].map((k) => Math.min(...outer.map((p) => p[k])));
      const high = [0, 1, 2].map((k) => Math.max(...outer.map((p) => p[k])));
      const size = Math.max(...high.map((each, k) => each - low[k])) || 1, step = niceStep(size);
      const floor = {
        step,
        low: low.map((each) => step * Math.floor(each / step + 1e-6)),
        high: high.map((each) => step * Math.ceil(each / step - 1e-6)),
      };
      for (const k of [0, 1]) floor.high[k] = Math.max(floor.high[k], floor.low[k] + step);
      floor.low[2] = data.ground === null ? low[2] : data.ground;
      const fine = data.traces.length ? motion(1000) : [];
      const traces = data.traces.map(({body, point}) => fine.map((row) => placed(row[body], point)));
      let largest = 0;
      for (const {signal} of data.arrows) {
        const values = app.result.signals[signal] || [];
        for (let k = 0; k + 5 < values.length; k += 6) {
          largest = Math.max(largest, Math.hypot(values[k + 3], values[k + 4], values[k + 5]));
        }
      }
      reach = {size, floor, outer, traces, largest, stress: stressLimit()};
    }

    /** Where colors of stresses end: where the weakest material yields, or at the greatest one. */
    function stressLimit() {
      if (!data.stress) return 0;
      const {yields} = data.stress, known = app.values?.parameters ?? {};
      if (yields.length) return Math.min(...yields.map(({path, value}) => known[path]?.[0] ?? value));
      let most = 0;
      for (const {stress} of data.ribbons) {
        for (const each of app.result.signals[stress] ?? []) most = Math.max(most, each);
      }
      return most || 1;
    }

    /** The colors of the slabs of a ribbon at the cursor's time; null without stresses. */
    function colorsOf(ribbon) {
      const known = ribbon.stress ? app.at(ribbon.stress, app.time) : null;
      if (!known) return null;
      const {colors, beyond} = data.stress;
      return stressesOf(ribbon, known).map((each) => {
        const share = each / reach.stress;
        return share > 1 ? beyond : colors[Math.floor(share * colors.length)] ?? colors.at(-1);
      });
    }

    /** Say what the colors of stresses mean. */
    function drawStressBar(ink) {
      const {colors, beyond, yields} = data.stress, limit = reach.stress;
      const [unit, one] = STRESSES.find(([, each]) => limit >= 0.1 * each) ?? STRESSES.at(-1);
      const left = 12, top = 24, step = BAR / colors.length;
      colors.forEach((each, k) => {
        context.fillStyle = each;
        context.fillRect(left + k * step, top, step + 0.5, 9);
      });
      if (yields.length) {
        path([[left + BAR, top], [left + BAR + 10, top + 4.5], [left + BAR, top + 9]], true);
        context.fillStyle = beyond;
        context.fill();
      }
      context.font = "11px system-ui, sans-serif";
      context.fillStyle = ink;
      context.textBaseline = "middle";
      context.textAlign = "left";
      context.fillText(`stress in ${unit}${yields.length ? ", up to yield" : ""}`, left, top - 10);
      for (const [share, align] of [[0, "left"], [0.5, "center"], [1, "right"]]) {
        context.textAlign = align;
        context.fillText(String(Number((share * limit / one).toPrecision(4))), left + share * BAR, top + 18);
      }
      context.textAlign = "center";
    }

    /** The corners of the floor, and the top of the upright axis at one of them. */
    function floorPoints() {
      const {low, high} = reach.floor;
      const corners = [[low[0], low[1]], [high[0], low[1]], [high[0], high[1]], [low[0], high[1]]];
      const right = (p) => axes[0] * p[0] + axes[1] * p[1];
      const left = corners.reduce((a, b) => (right(b) < right(a) ? b : a));
      return [...corners.map((p) => [...p, low[2]]), [...left, high[2]]];
    }

    /** Returns what takes camera coordinates to pixels of the canvas. */
    function scaling(width, height) {
      const seen = [...reach.outer, ...floorPoints()].map((p) => turned(axes, p));
      const range = [0, 1].map((k) => [Math.min(...seen.map((p) => p[k])), Math.max(...seen.map((p) => p[k]))]);
      const extent = range.map(([a, b]) => b - a);
      const [wide, tall] = [width, height].map((each) => Math.max(each - 2 * MARGIN, 0.5 * each));
      const scale = camera.zoom * Math.min(wide / extent[0], tall / extent[1]);
      const center = range.map(([a, b]) => 0.5 * (a + b));
      const at = (p) => [
        0.5 * width + camera.pan[0] + scale * (p[0] - center[0]),
        0.5 * height + camera.pan[1] - scale * (p[1] - center[1]),
      ];
      return {scale, at};
    }

    function path(points, closed) {
      context.beginPath();
      points.forEach(([x, y], k) => (k ? context.lineTo(x, y) : context.moveTo(x, y)));
      if (closed) context.closePath();
    }

    function line(points, style, width) {
      path(points, false);
      context.strokeStyle = style;
      context.lineWidth = width;
      context.stroke();
    }

    function drawFloor(at, ink, grid) {
      const {low, high, step} = reach.floor;
      const pixel = (p) => at(turned(axes, p));
      const ticks = (k) => {
        const found = [];
        for (let n = Math.ceil(low[k] / step - 1e-6); n <= high[k] / step + 1e-6; n++) found.push(n * step);
        return found;
      };
      if (Math.abs(camera.elevation) > 5) {
        for (const [k, other] of [[0, 1], [1, 0]]) {
          for (const tick of ticks(k)) {
            const ends = [low[other], high[other]].map((each) => {
              const p = [0, 0, low[2]];
              p[k] = tick;
              p[other] = each;
              return pixel(p);
            });
            line(ends, grid, 1);
          }
        }
      }
      const near = [0, 1].map((k) => (axes[6 + k] > 0 ? high[k] : low[k]));
      const edges = [
        [0, [low[0], near[1], low[2]], [high[0], near[1], low[2]]],
        [1, [near[0], low[1], low[2]], [near[0], high[1], low[2]]],
        [2, ...[low[2], high[2]].map((z) => [...floorPoints()[4].slice(0, 2), z])],
      ];
      const middle = pixel([0.5 * (low[0] + high[0]), 0.5 * (low[1] + high[1]), low[2]]);
      context.font = "11px system-ui, sans-serif";
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.fillStyle = ink;
      for (const [k, start, end] of edges) {
        const ends = [pixel(start), pixel(end)];
        const along = [ends[1][0] - ends[0][0], ends[1][1] - ends[0][1]], length = Math.hypot(...along);
        if (length < 40) continue;
        line(ends, ink, 0.8);
        let away = [-along[1] / length, along[0] / length];
        const half = [0.5 * (ends[0][0] + ends[1][0]), 0.5 * (ends[0][1] + ends[1][1])];
        if (away[0] * (half[0] - middle[0]) + away[1] * (half[1] - middle[1]) < 0) away = away.map((each) => -each);
        // Where the two edges of the floor meet there is the number of the other one.
        const all = ticks(k).filter((tick) => k !== 1 || Math.abs(tick - near[1]) > 0.5 * step);
        const every = Math.max(1, Math.ceil(all.length * 30 / length));
        all.filter((_, n) => n % every === 0).forEach((tick) => {
          const p = [...start];
          p[k] = tick;
          const [x, y] = pixel(p);
          context.fillText(String(Number(tick.toPrecision(6))), x + 14 * away[0], y + 12 * away[1]);
        });
        const label = `${"xyz"[k]} in m`;
        const isUpright = k === 2 || Math.abs(along[0]) < 0.3 * length;
        const top = ends[1][1] < ends[0][1] ? ends[1] : ends[0];
        if (isUpright) context.fillText(label, top[0], top[1] - 14);
        else context.fillText(label, half[0] + 36 * away[0], half[1] + 28 * away[1]);
      }
    }

    function drawGround([x, y], ink) {
      line([[x, y], [x - 6, y + 10], [x + 6, y + 10], [x, y]], ink, 1.3);
      line([[x - 10, y + 10], [x + 10, y + 10]], ink, 1.3);
      for (let k = -7; k <= 10; k += 4) line([[x + k, y + 10], [x + k - 4, y + 14]], ink, 1);
    }

    function arrowHead(from, to, style) {
      const angle = Math.atan2(to[1] - from[1], to[0] - from[0]);
      const wing = (turn) => [to[0] - 9 * Math.cos(angle + turn), to[1] - 9 * Math.sin(angle + turn)];
      path([to, wing(0.4), wing(-0.4)], true);
      context.fillStyle = style;
      context.fill();
    }

    function draw() {
      const width = canvas.clientWidth, height = canvas.clientHeight, ratio = window.devicePixelRatio || 1;
      if (!width || !height) return;
      if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
      }
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, width, height);
      if (!reach) return;
      const poses = data.signals.map((_, body) => poseOf(body));
      if (poses.some((pose) => !pose)) return;
      const ink = color("--ink", "#444444"), pale = color("--pale", "#8a9097"), grid = color("--grid", "#dfe2e5");
      axes = cameraAxes(camera.azimuth, camera.elevation);
      const {scale, at} = scaling(width, height), radius = RADIUS * reach.size * scale;
      context.lineJoin = "round";
      context.lineCap = "round";
      drawFloor(at, pale, grid);
      drawTraces(at);

      const things = data.pieces.map((piece) => seenPiece(piece, poses[piece.body]));
      const ribbons = new Map(); // by the number of the thing that is a part of one
      for (const [k, ribbon] of data.ribbons.entries()) {
        const first = things.length;
        things.push(...slabsOf(ribbon, poses, colorsOf(ribbon)).map((each) => seenPiece(each, WORLD)));
        for (let number = first; number < things.length; number++) ribbons.set(number, k);
      }
      const rest = [];
      for (const stroke of data.strokes) {
        const ends = stroke.points.map((p, k) => turned(axes, placed(poses[stroke.bodies[k]], p)));
        const thing = {stroke, hull: ends, planes: []};
        if (SORTED.has(stroke.kind)) things.push(bounded(thing));
        else rest.push(thing);
      }
      const order = things.length ? paintingOrder(things) : [], faces = [];
      for (const number of order) {
        const thing = things[number];
        if (thing.piece) faces.push(...drawPiece(thing, number, at));
        else drawElement(thing, at, radius, ink);
      }
      for (const {stroke, hull} of rest) drawMark(stroke, hull, poses, at, scale, ink);
      const arrows = drawForces(poses, at, scale);
      if (data.stress) drawStressBar(pale);
      const bodies = poses.map((pose) => at(turned(axes, [pose[9], pose[10], pose[11]])));
      shown = {faces, order, bodies, scale, arrows, stress: reach.stress};
      ribbonOf = (face) => ribbons.get(face.piece) ?? null;
    }

    // The number of the flexure that is seen at a pixel, or null.
    function ribbonAt(x, y) {
      const face = (shown?.faces ?? []).findLast(({corners}) => isInside(corners, x, y));
      return face ? ribbonOf(face) : null;
    }

    function isInside(corners, x, y) {
      let found = false;
      corners.forEach(([u, v], k) => {
        const [p, q] = corners[(k + 1) % corners.length];
        if (v > y !== q > y && x < u + (y - v) / (q - v) * (p - u)) found = !found;
      });
      return found;
    }

    function seenPiece(piece, pose) {
      const points = piece.vertices.map((p) => turned(axes, placed(pose, p)));
      const hull = piece.hull ? piece.hull.map((p) => turned(axes, placed(pose, p))) : points;
      const shift = turned(axes, [pose[9], pose[10], pose[11]]);
      const planes = piece.planes.map(([x, y, z, distance]) => {
        const n = turned(axes, turned(pose, [x, y, z]));
        return [...n, distance + dot(n, shift)];
      });
      return bounded({piece, points, hull, planes});
    }

    function drawPiece({piece, points}, number, at) {
      const found = [];
      piece.faces.forEach((face, k) => {
        const corners = face.map((n) => points[n]);
        let normal = normalOf(corners);
        if (piece.twoSided && normal[2] < 0) normal = normal.map((each) => -each);
        if (normal[2] <= 1e-9) return;
        found.push({corners, normal, k, depth: corners.reduce((sum, p) => sum + p[2], 0) / corners.length});
      });
      if (piece.twoSided) found.sort((a, b) => a.depth - b.depth);
      return found.map(({corners, normal, k}) => {
        const share = piece.flat ? 1 : DARKEST + (1 - DARKEST) * Math.max(0, dot(normal, LIGHT));
        const pixels = corners.map(at), outlined = k < piece.outlined;
        path(pixels, true);
        context.fillStyle = shade(piece.color, share);
        context.fill();
        context.strokeStyle = shade(piece.color, outlined ? EDGE * share : share);
        context.lineWidth = outlined ? 1 : 0.6;
        context.stroke();
        return {piece: number, body: piece.body, color: piece.color, corners: pixels};
      });
    }

    function drawElement({stroke: {kind}, hull}, at, radius, ink) {
      const ends = hull.map(at);
      if (kind === "bone") line(ends, BONE, 4);
      else if (kind === "dot") {
        context.beginPath();
        context.arc(...ends[0], 5.5, 0, 2 * Math.PI);
        context.fillStyle = BONE;
        context.fill();
      } else if (kind === "cable") line(ends, ink, 1.4);
      else {
        if (kind !== "damper") coil(ends, radius).forEach((each) => line(each, SPRING, 1.6));
        const style = kind === "damper" ? ink : SPRING;
        if (kind !== "spring") dashpot(ends, kind === "damper" ? radius : 0.5 * radius).forEach((each) => line(each, style, 1.5));
      }
    }

    function drawMark({kind, bodies, points}, hull, poses, at, scale, ink) {
      if (kind in TRIADS) {
        const pose = poses[bodies[0]], start = at(turned(axes, placed(pose, points[0])));
        const direction = turned(axes, turned(pose, points[1])), length = TRIAD * reach.size * scale;
        line([start, [start[0] + length * direction[0], start[1] - length * direction[1]]], TRIADS[kind], 2.2);
      } else if (kind === "ground") drawGround(at(hull[0]), color("--pale", "#777777"));
      else {
        const ends = hull.map(at);
        if (Math.hypot(ends[1][0] - ends[0][0], ends[1][1] - ends[0][1]) < PIN * reach.size * scale) {
          context.beginPath();
          context.arc(...ends[0], 3.5, 0, 2 * Math.PI);
          context.fillStyle = "#ffffff";
          context.fill();
          context.strokeStyle = "#444444";
          context.lineWidth = 1.2;
          context.stroke();
        } else {
          context.setLineDash([9, 3.5, 1.5, 3.5]);
          line(ends, ink, 1);
          context.setLineDash([]);
        }
      }
    }

    function drawTraces(at) {
      data.traces.forEach(({body, point}, k) => {
        line(reach.traces[k].map((p) => at(turned(axes, p))), TRACE, 1.2);
        context.beginPath();
        context.arc(...at(turned(axes, placed(poseOf(body), point))), 3.5, 0, 2 * Math.PI);
        context.fillStyle = TRACE;
        context.fill();
      });
    }

    function drawForces(poses, at, scale) {
      const drawn = [];
      if (!reach.largest) return drawn;
      for (const {body, point, signal} of data.arrows) {
        const value = app.at(signal, app.time);
        if (!value) continue;
        const start = placed(poses[body], point), share = ARROW * reach.size / reach.largest;
        const end = start.map((each, k) => each + share * value[3 + k]);
        const ends = [start, end].map((p) => at(turned(axes, p)));
        if (Math.hypot(ends[1][0] - ends[0][0], ends[1][1] - ends[0][1]) < 3) continue;
        line(ends, FORCE, 2);
        arrowHead(...ends, FORCE);
        const text = `${Number(Math.hypot(...value.slice(3, 6)).toPrecision(3))} N`;
        context.font = "11px system-ui, sans-serif";
        context.textAlign = ends[1][0] < ends[0][0] ? "right" : "left";
        context.fillStyle = FORCE;
        context.fillText(text, ends[1][0] + (ends[1][0] < ends[0][0] ? -6 : 6), ends[1][1] + 4);
        drawn.push({signal, ends, text});
      }
      return drawn;
    }

    // What people do -----------------------------------------------------------------------------

    let waiting = false;
    function soon() {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; draw(); });
    }

    function look(azimuth, elevation) {
      camera.azimuth = ((azimuth + 180) % 360 + 360) % 360 - 180;
      camera.elevation = Math.max(-90, Math.min(90, elevation));
      soon();
    }

    function zoom(factor) {
      camera.zoom = Math.max(0.2, Math.min(50, camera.zoom * factor));
      soon();
    }

    function move(x, y) {
      camera.pan = [camera.pan[0] + x, camera.pan[1] + y];
      soon();
    }

    function reset() {
      reach = null;
      measure();
      Object.assign(camera, {azimuth: data.camera[0], elevation: data.camera[1], zoom: 1, pan: [0, 0]});
      soon();
    }

    const fingers = new Map();
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      fingers.set(event.pointerId, [event.clientX, event.clientY]);
      canvas.style.cursor = "grabbing";
    });
    canvas.addEventListener("pointermove", (event) => {
      const last = fingers.get(event.pointerId);
      if (!last) return;
      const now = [event.clientX, event.clientY], step = [now[0] - last[0], now[1] - last[1]];
      const other = [...fingers].find(([id]) => id !== event.pointerId);
      fingers.set(event.pointerId, now);
      if (other) {
        const apart = ([x, y]) => Math.hypot(x - other[1][0], y - other[1][1]);
        zoom(apart(now) / Math.max(apart(last), 1));
        move(0.5 * step[0], 0.5 * step[1]);
      } else if (event.shiftKey || event.buttons > 1) move(...step);
      else look(camera.azimuth - 0.5 * step[0], camera.elevation + 0.5 * step[1]);
    });
    const release = (event) => {
      fingers.delete(event.pointerId);
      canvas.style.cursor = "grab";
    };
    for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) canvas.addEventListener(name, release);
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener("dblclick", reset);
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      zoom(Math.exp(-0.0015 * event.deltaY));
    }, {passive: false});
    canvas.addEventListener("keydown", (event) => {
      const arrows = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
      const way = arrows[event.key];
      if (way && event.shiftKey) move(20 * way[0], 20 * way[1]);
      else if (way) look(camera.azimuth - 6 * way[0], camera.elevation - 6 * way[1]);
      else if (event.key === "+" || event.key === "=") zoom(1.2);
      else if (event.key === "-") zoom(1 / 1.2);
      else if (event.key === "0") reset();
      else return;
      event.preventDefault();
    });

    const seen = [...data.signals, ...data.arrows.map(({signal}) => signal)];
    seen.push(...data.ribbons.map(({stress}) => stress));
    app.need?.(seen.filter((path) => path !== null));
    new ResizeObserver(soon).observe(canvas);
    app.on("result", () => { measure(); soon(); });
    app.on("time", soon);
    app.on("colors", soon);
    measure();
    draw();
    canvas.mechanism = {draw, look, ribbonAt, seen: () => ({...shown, camera: {...camera}})};
    return canvas.mechanism;
  };
})();
