// How charts of plotly look, on pages of all kinds.

/** Return what all axes of a chart have in common. */
function chartAxis() {
  return {
    gridcolor: token("--grid"),
    zerolinecolor: token("--line"),
    linecolor: token("--line"),
    tickcolor: token("--line"),
    tickfont: { size: 11.5 },
    showline: true,
    ticks: "outside",
    ticklen: 4,
    ticklabeloverflow: "allow", // otherwise labels are measured again and again
  };
}

/** Return what the layouts of all charts have in common. */
function chartLayout(margin, height) {
  return {
    margin,
    height,
    autosize: true,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, color: token("--quiet") },
    showlegend: false,
    hovermode: "x",
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    hoverlabel: { font: { size: 12 }, bgcolor: token("--card"), bordercolor: token("--line") },
  };
}

/** Return a text that plotly takes for nothing but text. */
function escaped(text) {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/%/g, "&#37;");
}
