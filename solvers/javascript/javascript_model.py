"""A diagram as JavaScript: the text of one function, and what it says about itself."""

from __future__ import annotations
