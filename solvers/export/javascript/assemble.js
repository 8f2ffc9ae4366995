// Mechanisms with loops that are assembled before a run. It needs `equations`, `info`, and the
// kernels of `model_text.py`.

const closings = put(equations.closings.memory(), newClosing());
closings.values = equations.closings.values;

// Assemble those that are told so wherever they are open at all, the others where a motion could not
// begin and `asked` is true. Returns the paths of those that were not met so far.
function assemble(time, x, env, asked) {
  const { paths } = equations.closings;
  const far = asked && badStart(time, x, env).length > 0;
  const open = assemble_loops(closings, far ? 1 : 0, time, x, 0, env, 0);
  if (open >= 0) {
    const left = badStart(time, x, env).join(", ");
    throw new Error(
      `Cannot assemble '${paths[open] || info.name}' near these positions: expected constraints that can be ` +
        `met, found ${left || "errors that do not become small"}. Start nearer to a closed ` +
        "configuration, or check the lengths and angles of its constraints",
    );
  }
  return paths.filter((_, c) => closings.moved[c] === 1 && closings.told[c] === 0);
}
