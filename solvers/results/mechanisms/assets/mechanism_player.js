// Plays a recorded motion in a page of its own: the store that `mountMechanism` reads, and controls.

function playMechanism({mechanism, recorded}) {
  const [view, play, moment, caption] = ["view", "play", "moment", "caption"].map((id) =>
    document.getElementById(id));
  const signals = {};
  for (const [path, numbers] of Object.entries(recorded.signals)) signals[path] = Float64Array.from(numbers);
  const count = recorded.captions.length, listeners = [];
  const app = {
    result: {signals},
    time: 0, // counts moments
    on: (topic, listener) => { if (topic === "time") listeners.push(listener); },
    at: (path, time) => {
      const size = signals[path].length / count;
      return signals[path].subarray(size * time, size * (time + 1));
    },
  };
  const drawn = mountMechanism(view, mechanism, app);
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let running = false, begun = 0;

  function seek(k) {
    app.time = k;
    moment.value = k;
    caption.textContent = recorded.captions[k];
    for (const listener of listeners) listener();
  }

  function tick(now) {
    if (!running) return;
    const k = Math.floor((now - begun) * recorded.fps / 1000) % count;
    if (k !== app.time) seek(k);
    requestAnimationFrame(tick);
  }

  function run(on) {
    running = on;
    play.textContent = on ? "Pause" : "Play";
    begun = performance.now() - 1000 * app.time / recorded.fps;
    if (on) requestAnimationFrame(tick);
  }

  moment.max = count - 1;
  moment.addEventListener("input", () => { run(false); seek(Number(moment.value)); });
  play.addEventListener("click", () => run(!running));
  seek(0);
  run(!calm);
  window.mechanism = {seek: (k) => { run(false); seek(k); }, ...drawn};
}
