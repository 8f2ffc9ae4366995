"""The handle: what a ``declare_*`` call returns, and the way to a value in a context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexure.diagrams.errors import ContextError

if TYPE_CHECKING:
    from flexure.diagrams.context import Context, LeafContext
    from flexure.diagrams.system import System


class Handle:
    """A declared item of one system: a parameter, a state, a port or a cache entry.

    A handle holds no value. It reads and writes the values of any context of its system, and
    accepts the root context as well as the context of the block itself.

    Attributes
    ----------
    system : System
        The block (or diagram) that declared it.
    name : str
        Name within that system.
    index : int
        Position among the items of the same kind of that system.
    doc : str
        One line for people.
    """

    what = "item"

    def __init__(self, system: System, name: str, index: int, doc: str = "") -> None:
        self.system = system
        self.name = name
        self.index = index
        self.doc = doc

    @property
    def path(self) -> str:
        """Path from the root diagram, such as ``"door.hinge.spring_constant"``."""
        prefix = self.system.path
        return f"{prefix}.{self.name}" if prefix else self.name

    @property
    def full_name(self) -> str:
        """Path for messages; a block that stands alone contributes its own name."""
        return f"{self.system.path or self.system.name}.{self.name}"

    def __call__(self, context: Context) -> Any:
        """Return the value in ``context``; this is what equations use."""
        raise NotImplementedError

    def _checked_call(self, context: Context) -> Any:
        """Return the value in ``context``, which is the root context or the block's own."""
        require_context(context, f"{self.what} '{self.full_name}'")
        return self(context)

    def _leaf(self, context: Context) -> LeafContext:
        """Find the context of the declaring block in ``context``."""
        require_context(context, f"{self.what} '{self.full_name}'")
        return context.find_leaf(self.system, self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} '{self.full_name}'>"


def require_context(context: Any, subject: str) -> None:
    """Refuse what is no context, with a text better than an AttributeError."""
    if not hasattr(context, "store"):
        raise ContextError(
            f"Cannot use {subject}",
            expected="a context, as made by create_default_context()",
            found=f"{context!r} ({type(context).__name__})",
        )


def require_root(context: Any, system: System, attempt: str) -> None:
    """Refuse what is no root context of a system."""
    require_context(context, f"'{system.label}'")
    if context.system is not system or not context.is_root:
        raise ContextError(
            f"{attempt} with this context",
            expected="a root context of the same system",
            found=repr(context),
        )
