// Runs of the model: in a worker, so that the page answers while it runs, and the latest first.

/** Return what a run gives, and when sources jump or bend in it: [{time, path}]. */
function carriedOut(model, request, { start, sources, most }) {
  const begin = performance.now();
  const answer = model.simulate(request);
  const { parameters, initial, inputs, tFinal } = request;
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
  return { ...answer, breaks, milliseconds: performance.now() - begin };
}

/** Answer requests of a run; this function lives in a worker.
 *
 * Engines of JavaScript make code fast that has run for a while, so a short run is repeated at first,
 * while nobody asks for another one: the first slider that moves finds it fast.
 */
function serve(makeModel, about) {
  const model = makeModel();
  let repeats = 4;
  function warmUp(request) {
    if (repeats-- <= 0) return;
    carriedOut(model, request, about);
    setTimeout(warmUp, 0, request); // between repeats, requests are answered
  }
  self.onmessage = ({ data: request }) => {
    let answer;
    try {
      answer = carriedOut(model, request, about);
    } catch (error) {
      answer = { outcome: "failed", message: String(error?.message ?? error) };
    }
    const arrays = [answer.time, ...Object.values(answer.signals ?? {})];
    const parts = arrays.filter((each) => each instanceof Float64Array).map((each) => each.buffer);
    self.postMessage(answer, [...new Set(parts)]);
    if (answer.milliseconds < 250) setTimeout(warmUp, 0, request);
  };
}

/** Make the function that carries out one request at a time: `run(request)` promises a result. */
function makeWay(model, modelText, about) {
  try {
    const call = `serve(flexureModel, ${JSON.stringify(about)});`;
    const text = ['"use strict";', modelText, carriedOut, serve, call].join("\n");
    const worker = new Worker(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
    return (request) =>
      new Promise((resolve, reject) => {
        worker.onmessage = (event) => resolve(event.data);
        worker.onerror = (event) => reject(new Error(event.message || "the worker has ended"));
        worker.postMessage(request);
      });
  } catch {
    return async (request) => carriedOut(model, request, about); // where workers are forbidden
  }
}

/** Run whenever values change: while a run is on its way, only the latest of those to come. */
function startRuns(app, data, model, modelText) {
  const way = makeWay(model, modelText, { start: data.start, sources: data.sources, most: 5 });
  let busy = false;
  let wanted = null; // since when, in milliseconds

  async function carryOn() {
    if (busy || wanted === null) return;
    const asked = wanted;
    [busy, wanted] = [true, null];
    const { parameters, initial, tFinal } = app.values;
    const given = ([, numbers]) => !numbers.some(Number.isNaN);
    const inputs = Object.fromEntries(Object.entries(app.values.inputs).filter(given));
    const signals = [...app.needed];
    let answer;
    try {
      answer = await way({ ...data.run, assemble: true, parameters, initial, inputs, tFinal, signals });
    } catch (error) {
      answer = { outcome: "failed", message: String(error?.message ?? error) };
    }
    busy = false;
    app.finish(revived(answer));
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
