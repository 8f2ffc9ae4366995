// The desk of a notebook: its host is the kernel, which answers each change with a run.

export default {
  render({ model, el }) {
    const place = element("div");
    const around = element("div");
    around.attachShadow({ mode: "open" }).append(element("style", {}, model.get("style")), place);
    el.append(around);
    const waiting = new Map(); // the last change of each value while the kernel runs
    let [busy, receive] = [false, () => null];
    const next = () => {
      const [first] = waiting;
      busy = first !== undefined;
      if (!busy) return;
      waiting.delete(first[0]);
      model.send({ ...first[1], more: waiting.size > 0 });
    };
    const listen = (message) => {
      receive(message);
      if (message.kind === "done") next();
    };
    mountDesk(place, {
      receive: (act) => (receive = act),
      send: (message) => {
        waiting.set(message.path, message);
        if (!busy) next();
      },
    });
    model.on("msg:custom", listen);
    model.send({ kind: "ready" });
    return () => model.off("msg:custom", listen);
  },
};
