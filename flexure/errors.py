"""The errors of Flexure: every exception that it raises on purpose."""

from flexure.diagrams.checks import errors as _errors
from flexure.diagrams.checks.errors import *

__all__: list[str] = []
__all__ += _errors.__all__
