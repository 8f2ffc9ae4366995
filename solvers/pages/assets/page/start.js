// From the data of the page to what people see.

const data = JSON.parse(document.getElementById("data").textContent);
const modelText = document.getElementById("model").textContent;
const model = data.live ? flexureModel() : null;
const way = data.live ? anotherWay(data, model, modelText) : null; // it reads the model meanwhile
const app = makeApp(data, model?.info ?? null);

/** Fill a section, and show it; a view that fails says so in its place. */
function open(name, mount) {
  const section = document.getElementById(name);
  section.hidden = false;
  const place = section.querySelector(".view");
  try {
    mount(place);
  } catch (error) {
    const text = `This view has failed: ${error.message}`;
    place.replaceChildren(element("p", { class: "alert" }, text));
    console.error(error);
  }
}

/** Show each plant, under its name where there are several. */
function mountMechanisms(place) {
  const several = data.mechanisms.length > 1;
  for (const each of data.mechanisms) {
    const view = element("div", { style: several ? { height: "320px" } : {} });
    if (several) place.append(element("h3", {}, each.name));
    place.append(view);
    const shapes = shapesOf(each, app);
    const mechanism = mountMechanism(view, each, shapes.app);
    shapes.mount(place, () => mechanism.draw());
    mountInside(place, each, mechanism, view.querySelector("canvas"), app);
  }
}

function showState() {
  const { outcome, message, milliseconds } = app.result;
  const alert = document.getElementById("alert");
  const failed = !["completed", "terminated", "interrupted"].includes(outcome);
  alert.hidden = !failed && !message;
  alert.classList.toggle("mild", !failed);
  alert.textContent =
    outcome === "interrupted"
      ? `You have stopped the run at t = ${format(app.span()[1], 6)} s`
      : failed
        ? `The run has stopped: ${message}`
        : message;
  const [first, last] = app.span().map((time) => format(time, 6));
  document.getElementById("span").textContent = `from ${first} to ${last} s`;
  const steps = app.result.statistics.steps;
  const parts = [steps && `${steps} steps`, milliseconds && `${format(milliseconds, 2)} ms`];
  document.getElementById("state").textContent = parts.filter(Boolean).join(" in ");
}

app.on("result", showState);
if (data.diagram) open("diagram", (place) => mountDiagram(place, data.diagram, app));
if (data.mechanisms.length) open("mechanism", mountMechanisms);
if (data.responses.length) open("responses", (place) => mountResponses(place, data, app));
mountPlayer(document.getElementById("player"), app);
mountSharing(document.getElementById("sharing"), data, app);
let foremost = () => null; // panel of the charts
open("charts", (place) => (foremost = mountCharts(place, data, app, model)));
followColors(app);
const endOfFirst = app.on("result", () => {
  endOfFirst();
  performance.mark("drawn");
  requestAnimationFrame(() =>
    setTimeout(() => {
      performance.mark("painted");
      document.body.dataset.drawn = "yes";
      if (data.samples.length) showAgreement(document.getElementById("agreement"), data, app, model);
    }),
  );
});
if (app.live) {
  open("values", (place) => {
    const controls = mountControls(place, data, app);
    mountGoals(place, data, app, controls, () => anotherWay(data, model, modelText));
    mountGlance(place, foremost, app);
  });
  open("runs", (place) => mountRuns(place, data, app));
  followAddress(app);
  followNotebook(app);
  startRuns(app, data, way);
} else {
  app.finish(revived(data.recorded));
  document.body.dataset.runs = 0;
}
