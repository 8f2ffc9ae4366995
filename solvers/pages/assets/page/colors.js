// Light or dark: as the system has it, or as a page says in which this one is embedded.

/** Keep the colors of the page as they are wanted, and tell the store when they change. */
function followColors(app) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const tell = () => app.changed("colors");
  const rules = [...document.styleSheets]
    .flatMap((sheet) => [...sheet.cssRules])
    .filter((rule) => rule.media?.mediaText.includes(dark.media));
  dark.addEventListener("change", tell);
  addEventListener("message", ({ source, data: wanted }) => {
    if (source !== parent || !["light", "dark"].includes(wanted?.colors)) return;
    for (const rule of rules) rule.media.mediaText = wanted.colors === "dark" ? "screen" : "not all";
    document.documentElement.style.colorScheme = wanted.colors;
    tell();
  });
}
