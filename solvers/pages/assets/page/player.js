// The cursor over time: play, pause, scrub, and how fast.

const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 5];
const NOTCHES = 1000; // of the slider from the first time to the last

/** Put the player into an element. */
function mountPlayer(place, app) {
  const button = element("button", { type: "button", class: "play", onclick: toggle });
  const slider = element("input", {
    type: "range",
    min: 0,
    max: NOTCHES,
    step: 1,
    value: 0,
    "aria-label": "Time",
    oninput: () => {
      app.pause();
      const [first, last] = app.span();
      app.seek(first + (slider.value / NOTCHES) * (last - first));
    },
  });
  const reading = element("output", { class: "clock", "aria-live": "off" });
  const speed = element(
    "select",
    { "aria-label": "Speed" },
    SPEEDS.map((each) => element("option", { value: each, selected: each === 1 }, `${each}×`)),
  );
  place.append(button, slider, reading, speed);

  let last = 0;
  function toggle() {
    if (app.playing) return app.pause();
    const [first, end] = app.span();
    if (app.time >= end) app.seek(first);
    app.play();
  }
  function advance(now) {
    if (!app.playing) return;
    const end = app.span()[1];
    app.seek(app.time + ((now - last) / 1000) * Number(speed.value));
    last = now;
    if (app.time >= end) app.pause();
    else requestAnimationFrame(advance);
  }
  app.on("playing", () => {
    show();
    if (!app.playing) return;
    last = performance.now();
    requestAnimationFrame(advance);
  });
  function show() {
    button.textContent = app.playing ? "❚❚" : "▶";
    button.setAttribute("aria-label", app.playing ? "Pause" : "Play");
    const [first, end] = app.span();
    const share = end > first ? (app.time - first) / (end - first) : 0;
    slider.value = Math.round(NOTCHES * share);
    slider.style.setProperty("--part", `${100 * share}%`);
    const digits = clamped(2 - Math.ceil(Math.log10(end - first)), [2, 12]);
    const time = app.time.toFixed(Number.isFinite(digits) ? digits : 2);
    slider.setAttribute("aria-valuetext", `${time} seconds`);
    reading.textContent = `${time} s`;
  }
  app.on("time", show);
  app.on("result", show);
  show();
}
