"""Joints: how one body can move relative to another.

A joint is between a frame F on a parent body and a frame M on a child body. Each kind is a set of
pure functions of positions q and velocities v (the pose of M in F, the matrix H of V_FM = H v, its
rate, q̇ = N v and the inverse), which run on numbers and on symbols, together with the handles that
read and write the quantities of a joint in contexts.
"""

from flexure.blocks.multibody.joints.base.joint import Joint as Joint
