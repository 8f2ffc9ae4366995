"""Pictures and animations of mechanisms: what is shown of them, seen by a camera, drawn by depth.

`strokes` are lines between places on bodies, `facets` the faces of their shapes, and a `scene` has
both, with all sizes that depend on the motion. A `camera` projects it on a picture, `depth` says
what is in front of what, and `drawing` draws it with Matplotlib, which `mechanism_plots` and
`animations` ask for. `view_data` is the same scene for the canvas of a browser.
"""
