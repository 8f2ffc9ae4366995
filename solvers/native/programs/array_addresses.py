"""Where arrays are, for functions that take pointers."""

from __future__ import annotations

import ctypes
from typing import Any

from numpy.typing import NDArray

_Byte: Any = ctypes.c_char


def address_of(array: NDArray[Any]) -> int:
    """Return where an array in one piece begins; whoever asks keeps it alive.

    For what can be written, ``array.ctypes.data`` would take several times as long.
    """
    flags = array.flags
    if flags.writeable and flags.c_contiguous and array.size:
        return ctypes.addressof(_Byte.from_buffer(array))
    return array.ctypes.data
