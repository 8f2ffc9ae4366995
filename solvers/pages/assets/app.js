// The page's one store, which all views share: what is asked (values), what came of it (result),
// and where we look (time). Views read it, ask it for changes, and hear of changes of others.
//
//   app.info      what `flexureModel().info` says: states, parameters, inputs, signals, events
//   app.values    {parameters: {path: [numbers]}, initial: {path: [numbers]},
//                  inputs: {path: [numbers]}, tFinal: number}, all of them; read only
//   app.result    what the last run gave, or null before the first one:
//                 {outcome, message, time, signals: {path: Float64Array}, events: [{time, path}],
//                  statistics}; signals lie one sample after the other, `size` numbers in each
//   app.time      the cursor's time in seconds
//   app.playing   whether it moves
//   app.shown     which signals the charts show, such as ["door.axis.angle", "plant.x[1]"]
//   app.selected  the path of the block, port or parameter that all views point at, or null
//   app.live      false on a page of recorded signals, whose values cannot be changed
//
//   app.set(kind, path, numbers)  change a value and run: kind is "parameters", "initial", "inputs"
//   app.setFinalTime(seconds)
//   app.reset()                   back to the values that the page came with
//   app.seek(time)                move the cursor
//   app.play(), app.pause()
//   app.show(signal), app.hide(signal)   in the charts
//   app.select(path)
//   app.need([paths])             signals that results are to hold from now on; runs if they do not
//   app.at(path, time)            components of a signal at a time (the cursor's when omitted), as
//                                 an array; after a jump, at its instant; null when it is not there
//   app.on(topic, listener)       listener() is called after a change; returns what ends that.
//                                 Topics: "values", "result", "time", "playing", "shown",
//                                 "selected". "time" comes with each frame of an animation.
//
// Files of this folder are joined, in the order that `document.py` lists, inside of one strict
// function: what a file declares at its top is seen by all, and nothing is global. Elements are made
// by `element("div", {class: "panel", onclick: f}, "text", child)` of `elements.js`, where text stays
// text; there is no innerHTML. Numbers are written by `format(number)`, and colors, sizes and fonts
// are the custom properties of `page.css` (`var(--ink)`), which know light and dark.
//
// A view is a function that is called once, with an empty element of the page, the data that
// Python has prepared for it, and this store: `mountDiagram(element, data, app)`,
// `mountMechanism(element, data, app)`. It draws from app.result when there is one, and
// whenever "result" or "time" come.
