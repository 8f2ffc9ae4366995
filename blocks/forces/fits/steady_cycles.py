"""Steady cycles of friction between two amplitudes: their first harmonic."""

from __future__ import annotations

from typing import Any

import numpy as np

from flexure.diagrams.values.arrays import FloatArray

#: Points and weights for the mean over the half of a cycle in which the deformation grows.
_POINTS = 48


def first_harmonic(X: FloatArray, limit: float, half: float, *, has_memory: bool) -> Any:
    """Return the first harmonic of the load of friction over the amplitude.

    Parameters
    ----------
    X : array
        Amplitudes > 0 in m or rad.
    limit, half : float
        Greatest load F, and the deformation h at which half of it is there from rest on.
    has_memory : bool
        Whether the slope of the load starts with F/h from each turn on.

    Returns
    -------
    ndarray of complex
        In N/m or N m/rad.
    """
    Y = np.expand_dims(X / half, -1)
    points, weights = np.polynomial.legendre.leggauss(_POINTS)
    phi = 0.5 * np.pi * points
    way = Y * (1.0 + np.sin(phi))
    if has_memory:
        alpha = 2.0 * Y / (1.0 + Y + np.sqrt(1.0 + Y * (6.0 + Y)))
        a = 1.0 - (1.0 + alpha) / (1.0 + way / (1.0 + alpha))
    else:
        alpha = 2.0 * Y / (1.0 + np.sqrt(1.0 + 4.0 * Y**2))
        a = 1.0 - 1.0 / (1.0 / (1.0 + alpha) + way)
    return limit / X * np.sum(weights * a * (np.sin(phi) + 1j * np.cos(phi)), axis=-1)
