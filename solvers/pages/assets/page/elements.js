"use strict";

// Elements of the page, made so that text stays text, and numbers as people write them.

const SVG = "http://www.w3.org/2000/svg";

/** Make an HTML element; what is called on... listens, `data` and `style` are mappings. */
function element(tag, attributes = {}, ...children) {
  return furnish(document.createElement(tag), attributes, children);
}

/** Make an element of SVG. */
function svgElement(tag, attributes = {}, ...children) {
  return furnish(document.createElementNS(SVG, tag), attributes, children);
}

function furnish(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "data") Object.assign(made.dataset, value);
    else if (name === "style") Object.assign(made.style, value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** Write a number in a few digits. */
function format(number, digits = 4) {
  if (!Number.isFinite(number)) return Number.isNaN(number) ? "–" : number > 0 ? "∞" : "−∞";
  if (number === 0) return "0";
  const size = Math.abs(number);
  const text =
    size >= 1e5 || size < 1e-4
      ? number.toExponential(Math.max(0, digits - 2)).replace(/\.?0+e/, "e").replace("e+", "e")
      : String(Number(number.toPrecision(digits)));
  return text.replace("-", "−").replace("e-", "e−");
}

/** Write a unit so that it reads well: "N m/rad" stays, "m^2" becomes "m²". */
function unitText(unit) {
  return unit.replace(/\^(-?\d)/g, (_, power) => [...power].map((c) => SUPERSCRIPTS[c]).join(""));
}

const RAISED = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹";
const SUPERSCRIPTS = Object.fromEntries([..."-0123456789"].map((c, k) => [c, RAISED[k]]));

/** Read what somebody has typed as a decimal number; NaN if it is none. */
function parse(text) {
  const plain = text.trim().replace(/[−–]/g, "-").replace("∞", "Infinity");
  return /^[+-]?(Infinity|[\d.]+(e[+-]?\d+)?)$/i.test(plain) ? Number(plain) : NaN;
}

/** Say a line to people for some seconds, also to those who listen to the page. */
function tell(text) {
  const place = document.getElementById("told");
  place.textContent = text;
  clearTimeout(tell.timer);
  tell.timer = setTimeout(() => (place.textContent = ""), 4000);
}

/** Give a file to whoever reads the page. */
function download(name, text, kind) {
  const address = URL.createObjectURL(new Blob([text], { type: kind }));
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
