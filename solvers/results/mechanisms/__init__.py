"""Pictures and animations of mechanisms: what is shown of them, seen by a camera, drawn by depth.

`strokes` are lines between places on bodies, `facets` the faces of their shapes, and a `scene` has
both, with all sizes that depend on the motion. A `camera` projects it on a picture, and `drawing`
draws it with Matplotlib, by depth, which `pictures` and `animations` ask for. `view_data` is the
same scene for the canvas of a browser.
"""
