"""The errors of Flexure: every exception that it raises on purpose."""

from flexure.diagrams import errors as _errors
from flexure.diagrams.errors import *

__all__: list[str] = []
__all__ += _errors.__all__
