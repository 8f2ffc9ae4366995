// Folds signatures with many parameters; without scripts they are shown in full.
document.addEventListener("DOMContentLoaded", () => {
  for (const list of document.querySelectorAll("dt.sig > dl")) {
    const count = list.querySelectorAll(":scope > dd").length;
    if (count < 7) continue;
    const details = document.createElement("details");
    const summary = document.createElement("summary");
    summary.textContent = `${count} parameters`;
    list.before(details);
    details.append(summary, list);
  }
});
