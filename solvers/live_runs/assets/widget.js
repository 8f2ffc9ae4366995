// A cell of a notebook: the kernel sends a page or a desk, and answers each change with a run.

/** Import the text of a module, which no file of a notebook stores. */
async function imported(text) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const found = await import(address);
  URL.revokeObjectURL(address);
  return found;
}

/** Return whether the colors around an element are dark. */
function isDark(element) {
  for (let each = element; each; each = each.parentElement) {
    const [red, green, blue, opacity = 1] = getComputedStyle(each).backgroundColor.match(/[0-9.]+/g).map(Number);
    if (opacity > 0) return red + green + blue < 384;
  }
  return false;
}

export default {
  render({ model, el }) {
    const waiting = new Map(); // the last change of each value while the kernel runs
    let [busy, receive, frame] = [false, () => null, null];
    function next() {
      const [first] = waiting;
      busy = first !== undefined;
      if (!busy) return;
      waiting.delete(first[0]);
      model.send({ ...first[1], more: waiting.size > 0 });
    }
    function send(key, message) {
      waiting.set(key, message);
      if (!busy) next();
    }
    function showPage({ html, values }) {
      frame = document.createElement("iframe");
      frame.sandbox = "allow-scripts allow-downloads";
      frame.style = "width: 100%; height: 760px; border: 1px solid #8886; border-radius: 8px";
      frame.onload = () => {
        frame.contentWindow.postMessage({ colors: isDark(el) ? "dark" : "light" }, "*");
        frame.contentWindow.postMessage({ kernel: values }, "*");
      };
      frame.srcdoc = html;
      el.append(frame);
    }
    async function showDesk({ script, style, ...hello }) {
      const { mountDesk } = await imported(script);
      const [around, place, look] = ["div", "div", "style"].map((name) => document.createElement(name));
      look.textContent = style;
      around.attachShadow({ mode: "open" }).append(look, place);
      el.append(around);
      const link = { receive: (act) => (receive = act), send: (message) => send(message.path, message) };
      mountDesk(place, link);
      receive(hello);
      model.send({ kind: "show" });
    }
    function listen(message) {
      if (message.kind === "page") showPage(message);
      else if (message.kind === "hello") showDesk(message);
      else if (message.kind === "kernel") frame?.contentWindow.postMessage({ kernel: message.values }, "*");
      else if (message.kind === "refused" && frame) frame.contentWindow.postMessage({ refused: message.text }, "*");
      else receive(message);
      if (message.kind === "done") next();
    }
    function hear({ source, data }) {
      if (frame === null || source !== frame.contentWindow || !data?.values) return;
      const before = waiting.get("page")?.values ?? {};
      send("page", { kind: "values", values: { ...before, ...data.values }, t_final: data.tFinal });
    }
    model.on("msg:custom", listen);
    addEventListener("message", hear);
    model.send({ kind: "ready" });
    return () => {
      model.off("msg:custom", listen);
      removeEventListener("message", hear);
    };
  },
};
