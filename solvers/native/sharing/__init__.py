"""Sharing: equations of blocks that are alike, traced and compiled once for all of them.

In the order of the work: `structural_key` tells which blocks are alike. `walk` passes the diagram,
and lets `prototype` trace one block of each of the `families`; what these read and compute is in
`columns`. `code_levels` makes jobs of that, and `jobs` finds more that is alike. `loops` and
`repetition` write the code. `shared_jacobian` differentiates the jobs, for which `tangent_loops`
writes the code. `shared_derivatives`, where all of it begins and ends, is read first.
"""
