// Runs of the model: in a worker, so that the page answers while it runs, and the latest first.

/** Answer requests of a run with what `simulate` returns; this function lives in a worker. */
function serve(makeModel) {
  const model = makeModel();
  self.onmessage = ({ data: request }) => {
    const begin = performance.now();
    let answer;
    try {
      answer = model.simulate(request);
    } catch (error) {
      answer = { outcome: "failed", message: String(error?.message ?? error) };
    }
    self.postMessage({ ...answer, milliseconds: performance.now() - begin });
  };
}

/** Make the function that carries out requests one at a time: `run(request)` promises a result. */
function makeWay(modelText) {
  try {
    const text = `"use strict";\n${modelText}\n(${serve})(flexureModel);`;
    const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    const worker = new Worker(address);
    return (request) =>
      new Promise((resolve, reject) => {
        worker.onmessage = (event) => resolve(event.data);
        worker.onerror = (event) => reject(new Error(event.message || "the worker has ended"));
        worker.postMessage(request);
      });
  } catch {
    return null; // where workers are forbidden
  }
}

function makeWayInPage(model) {
  return async (request) => {
    const begin = performance.now();
    const answer = model.simulate(request);
    return { ...answer, milliseconds: performance.now() - begin };
  };
}

/** Run whenever values change: while a run is on its way, only the latest of those to come. */
function startRuns(app, data, model, modelText) {
  let way = makeWay(modelText) ?? makeWayInPage(model);
  let busy = false;
  let wanted = null; // since when, in milliseconds

  async function carryOn() {
    if (busy || wanted === null) return;
    const asked = wanted;
    [busy, wanted] = [true, null];
    try {
      app.finish(revived(await way(requestOf(app, data))));
    } catch (error) {
      app.finish(revived({ outcome: "failed", message: String(error?.message ?? error) }));
    }
    busy = false;
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

/** Return what a run is asked for. */
function requestOf(app, data) {
  const { parameters, initial, inputs, tFinal } = app.values;
  return { ...data.run, parameters, initial, inputs, tFinal, signals: [...app.needed] };
}

/** Return a result with all that views count on, also where a run gave nothing. */
function revived(answer) {
  return {
    message: "",
    events: [],
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
