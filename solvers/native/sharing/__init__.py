"""Sharing: equations of blocks that are alike, traced and compiled once for all of them.

In the order of the work: `structural_key` tells which blocks are alike. `diagram_walk` passes the
diagram, and traces one block of each of the `families`; what these read and compute is in
`value_columns`. `code_levels` makes jobs of that, and `jobs` finds more that is alike. `job_loops`
and `repetition` write the code. `shared_jacobian` differentiates the jobs. `shared_derivatives`,
where all of it begins and ends, is read first.
"""
