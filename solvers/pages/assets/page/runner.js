// Runs of the model: in a worker, so that the page answers while it runs, and the latest first.

const A_WHILE = 50; // milliseconds that a run takes before it listens again
const SOME_STEPS = 100; // after which it looks at the clock
const SIGN = 300; // milliseconds after which a run is seen to be going on

/** Carry out a run in parts, until it ends or `wanted()` is false; then in `pause()` others act. */
async function carriedOut(model, request, about, wanted, pause) {
  const begin = performance.now();
  const run = model.begin(request);
  let last = begin;
  while (!run.advance(SOME_STEPS)) {
    if (performance.now() - last < A_WHILE) continue;
    await pause();
    if (!wanted()) run.stop();
    last = performance.now();
  }
  const answer = run.finish();
  const breaks = breaksIn(model, request, about);
  return { ...answer, breaks, milliseconds: performance.now() - begin };
}

/** Return when sources jump or bend in a run: [{time, path}]. */
function breaksIn(model, { parameters, initial, inputs, tFinal }, { start, sources, most }) {
  const breaks = [];
  let time = start - Math.max(Number.MIN_VALUE, Math.abs(start) * Number.EPSILON);
  while (sources.length > 0 && breaks.length < most && time < tFinal) {
    const found = model.evaluate({ parameters, initial, inputs, time }).breaks;
    const last = time;
    time = found.reduce((least, each) => (each > last && each < least ? each : least), tFinal);
    found.forEach((each, k) => {
      if (each === time && time < tFinal) breaks.push({ time, path: sources[k] });
    });
  }
  return breaks;
}

/** Return a function that lets others act, sooner than a timer would. */
function newPause() {
  const { port1, port2 } = new MessageChannel();
  return () =>
    new Promise((resolve) => {
      port1.onmessage = resolve;
      port2.postMessage(null);
    });
}

/** Answer requests of a run, of which null ends the present one; this function lives in a worker.
 *
 * Engines of JavaScript make code fast that has run for a while, so a short run is repeated at first,
 * while nobody asks for another one: the first slider that moves finds it fast.
 */
function serve(makeModel, about) {
  const model = makeModel();
  const pause = newPause();
  let repeats = 4;
  let wanted = false;
  async function warmUp(request) {
    if (wanted || repeats-- <= 0) return;
    await carriedOut(model, request, about, () => true, pause);
    setTimeout(warmUp, 0, request); // between repeats, requests are answered
  }
  self.onmessage = async ({ data: request }) => {
    wanted = request !== null;
    if (!wanted) return;
    let answer;
    try {
      answer = await carriedOut(model, request, about, () => wanted, pause);
    } catch (error) {
      answer = { outcome: "failed", message: String(error?.message ?? error) };
    }
    wanted = false;
    const { time, signals, dense } = answer;
    const columns = { ...signals, time, begin: dense?.begin, end: dense?.end };
    const arrays = [...Object.values(columns), ...Object.values(dense?.signals ?? {})];
    const parts = arrays.filter((each) => each instanceof Float64Array).map((each) => each.buffer);
    self.postMessage(answer, [...new Set(parts)]);
    if (answer.milliseconds < 250) setTimeout(warmUp, 0, request);
  };
}

/** Make what carries out one request at a time: `run(request)` promises a result, `stop()` ends it. */
function makeWay(model, modelText, about) {
  try {
    const call = `serve(flexureModel, ${JSON.stringify(about)});`;
    const sizes = `const [A_WHILE, SOME_STEPS] = [${A_WHILE}, ${SOME_STEPS}];`;
    const parts = ['"use strict";', modelText, sizes, carriedOut, breaksIn, newPause, serve, call];
    const text = new Blob([parts.join("\n")], { type: "text/javascript" });
    const worker = new Worker(URL.createObjectURL(text));
    const run = (request) =>
      new Promise((resolve, reject) => {
        worker.onmessage = (event) => resolve(event.data);
        worker.onerror = (event) => reject(new Error(event.message || "the worker has ended"));
        worker.postMessage(request);
      });
    return { run, stop: () => worker.postMessage(null) };
  } catch {
    const pause = newPause(); // where workers are forbidden
    let wanted = true;
    const run = (request) => {
      wanted = true;
      return carriedOut(model, request, about, () => wanted, pause);
    };
    return { run, stop: () => (wanted = false) };
  }
}

/** Return what asks the model for a run with values. */
function requestOf({ parameters, initial, inputs, tFinal }, data, app) {
  const given = ([, numbers]) => !numbers.some(Number.isNaN);
  const compared = data.responses.flatMap(({ signal, setpoint }) => [signal, setpoint]);
  const dense = [...new Set(compared.filter(Boolean).map(pathOf))];
  const known = Object.fromEntries(Object.entries(inputs).filter(given));
  const about = { parameters, initial, inputs: known, tFinal, signals: [...app.needed], dense };
  return { ...data.run, assemble: true, ...about };
}

/** Return what runs a model in a worker of its own. */
const anotherWay = (data, model, modelText) =>
  makeWay(model, modelText, { start: data.start, sources: data.sources, most: 5 });

/** Run whenever values change: while a run is on its way, only the latest of those to come. */
function startRuns(app, data, way) {
  const sign = makeSign(document.getElementById("busy"), () => way.stop());
  let busy = false;
  let wanted = null; // since when, in milliseconds

  async function carryOn() {
    if (busy || wanted === null) return;
    const asked = wanted;
    [busy, wanted] = [true, null];
    sign.show();
    const { values, gesture } = app;
    let answer;
    try {
      answer = await way.run(requestOf(values, data, app));
    } catch (error) {
      answer = { outcome: "failed", message: String(error?.message ?? error) };
    }
    busy = false;
    sign.hide();
    app.finish(revived(answer), values, gesture);
    performance.measure("answer", { start: asked, end: performance.now() });
    document.body.dataset.runs = Number(document.body.dataset.runs ?? 0) + 1;
    carryOn();
  }
  function ask() {
    wanted ??= performance.now();
    carryOn();
  }
  app.on("values", ask);
  app.on("needed", ask);
  ask();
}

/** Make the sign that a run is going on, with the button that stops it. */
function makeSign(place, stop) {
  const button = element("button", { type: "button", onclick: stop }, "Stop");
  place.append(element("span", {}, "Running…"), button);
  let timer = 0;
  return {
    show: () => (timer = setTimeout(() => (place.hidden = false), SIGN)),
    hide() {
      clearTimeout(timer);
      place.hidden = true;
    },
  };
}

/** Return a result with all that views count on, also where a run gave nothing. */
function revived(answer) {
  return {
    message: "",
    events: [],
    breaks: [],
    statistics: {},
    ...answer,
    time: numbersOf(answer.time ?? []),
    signals: Object.fromEntries(
      Object.entries(answer.signals ?? {}).map(([path, values]) => [path, numbersOf(values)]),
    ),
  };
}

/** Return numbers as Float64Array; Python writes them as the base64 text of their bytes. */
function numbersOf(values) {
  if (values instanceof Float64Array) return values;
  if (typeof values !== "string") return Float64Array.from(values);
  return new Float64Array(Uint8Array.from(atob(values), (c) => c.charCodeAt(0)).buffer);
}
