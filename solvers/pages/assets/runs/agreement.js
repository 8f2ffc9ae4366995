// The check of the page by itself: its equations at instants for which Python has stored numbers.

/** Return the largest difference from Python, relative to the numbers that have the same unit. */
function disagreement(model, samples, unitOf) {
  const pairs = samples.flatMap(({ time, state, derivatives, signals }) => {
    const paths = Object.keys(signals);
    const found = model.evaluate({ time, state: [...numbersOf(state)], signals: paths });
    return [
      { unit: null, ours: found.derivatives, theirs: numbersOf(derivatives) },
      ...paths.map((path) => ({ unit: unitOf(path), ours: found.signals[path], theirs: numbersOf(signals[path]) })),
    ];
  });
  const sizes = new Map();
  for (const { unit, theirs } of pairs) {
    sizes.set(unit, theirs.filter(Number.isFinite).reduce((size, each) => Math.max(size, Math.abs(each)), sizes.get(unit) ?? 0));
  }
  return pairs.reduce((worst, { unit, ours, theirs }) => {
    const off = theirs.map((each, k) => (Object.is(each, ours[k]) ? 0 : Math.abs(each - ours[k])));
    return off.reduce((most, each) => Math.max(most, each / (sizes.get(unit) || 1)), worst); // NaN stays
  }, 0);
}

/** Say in an element how well the page agrees with Python. */
function showAgreement(place, data, app, model) {
  const unitOf = (path) => app.signals.get(path).unit;
  const worst = disagreement(model, data.samples, unitOf);
  const isFine = worst < AGREES;
  const paths = Object.keys(data.samples[0].signals);
  place.hidden = false;
  place.className = isFine ? "badge" : "badge off";
  place.dataset.number = String(worst);
  place.title =
    `Derivatives and ${paths.length} signals at ${data.samples.length} states, computed here and ` +
    "compared with the numbers that Python has stored in this page, relative to their size";
  const much = worst > 0 ? format(worst, 2) : "the last bit";
  place.textContent = isFine ? `✓ agrees with Python to ${much}` : `differs from Python by ${format(worst, 2)}`;
}

const AGREES = 1e-9;
