"""The errors of Flexure: every exception that it raises on purpose."""

from flexure.diagrams.common import errors as _errors
from flexure.diagrams.common.errors import *

__all__: list[str] = []
__all__ += _errors.__all__
