"""The handle: what a ``declare_*`` call returns, and the way to a value in a context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from flexure.diagrams.checks.errors import ContextError, DeclarationError, FlexureError
from flexure.diagrams.interface.option_names import AnswersOtherWords


class ContextLike(Protocol):
    """The part of a `Context` that handles use: one of their own system, or one around it."""

    @property
    def system(self) -> Any:
        """The system whose values these are."""

    @property
    def root(self) -> Any:
        """The context of the root system."""

    def find(self, system: Any, handle: Any = None) -> Any:
        """Return the context of a system below (or at) this one."""


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
        One line of documentation.
    """

    what = "item"

    def __init__(self, system: Any, name: str, index: int, doc: str = "") -> None:
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

    def __call__(self, context: ContextLike) -> Any:
        """Return the value in ``context``; this is what equations use."""
        raise NotImplementedError

    def _checked_call(self, context: ContextLike) -> Any:
        """Return the value in ``context``, which is the root context or the block's own."""
        require_context(context, f"{self.what} '{self.full_name}'")
        return self(context)

    def _leaf(self, context: ContextLike) -> Any:
        """Find the context of the declaring block in ``context``."""
        require_context(context, f"{self.what} '{self.full_name}'")
        return context.find(self.system, self)

    def __copy__(self) -> Self:
        return self  # it is the one that its system knows

    def __repr__(self) -> str:
        return f"<{type(self).__name__} '{self.full_name}'>"


class Located:
    """What is no handle of a block, yet leads to components of a value, as an angle of a joint."""

    @property
    def place(self) -> Any:
        """Where its components are."""
        raise NotImplementedError

    @property
    def path(self) -> str:
        """The path from the root diagram."""
        path: str = self.place.path
        return path


class HandleOwner(AnswersOtherWords):
    """Base of what has handles as attributes: it refuses values in their place."""

    _handle_names: ClassVar[set[str]] = set()  # of attributes that hold handles in some instance

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._handle_names = set()

    if not TYPE_CHECKING:  # where it would hide misspelled names

        def __setattr__(self, name: str, value: Any) -> None:  # runs often, so it does little
            if isinstance(value, _HANDLES):
                self._handle_names.add(name)
            elif name in self._handle_names:
                _refuse_in_place_of(self.__dict__.get(name), self, name, value)
            try:
                put_first(self, name, value)
            except AttributeError:
                _refuse_in_place_of_property(self, name, value)
                raise


_HANDLES = (Handle, Located)
#: Sets an attribute that cannot hold a handle yet, which is several times faster.
put_first = object.__setattr__


def _refuse_in_place_of_property(owner: HandleOwner, name: str, value: Any) -> None:
    """Refuse to assign a value to a property that gives a handle."""
    try:
        held = getattr(owner, name, None)
    except FlexureError:  # a handle of a plant that is not built yet
        held = Handle if hasattr(type(owner), f"default_{name}") else None
    _refuse_in_place_of(held, owner, name, value)


def _refuse_in_place_of(held: Any, owner: HandleOwner, name: str, value: Any) -> None:
    """Refuse to assign a value to an attribute that holds a handle; say how to set it."""
    if not (held is Handle or isinstance(held, (Handle, Located))):
        return
    own = getattr(owner, "name", "it")
    verbs = [verb for verb in ("set", "fix") if hasattr(held, verb)]
    calls = [f"Call {own}.{name}.{verb}(context, {value!r:.80})" for verb in verbs]
    default = getattr(type(owner), f"default_{name}", None)
    if getattr(default, "fset", None) is not None:
        calls.append(f"Set {own}.default_{name} before the plant is built")
    elif default is not None:
        calls.append(f"For all contexts, pass {name}= where '{own}' is made")
    raise DeclarationError(
        f"Cannot assign {value!r:.80} to '{name}' of '{own}'",
        expected="a context to set it in, since values live in contexts",
        found="an attribute, which holds the handle",
        remedy=". ".join(calls) or "The block computes it",
    )


def require_context(context: Any, subject: str) -> None:
    """Refuse what is no context, with a text better than an AttributeError."""
    if not hasattr(context, "store"):
        raise ContextError(
            f"Cannot use {subject}",
            expected="a context, as made by create_default_context()",
            found=f"{context!r} ({type(context).__name__})",
        )


def found_twin(context: ContextLike, system: Any) -> dict[str, str]:
    """State that a context belongs to another system of the same name, if it does.

    That happens in notebooks, when a cell that builds a diagram has run again.
    """
    mine, theirs = root_of(system), context.root.system
    if mine is theirs or mine.name != theirs.name:
        return {}
    return {
        "found": f"a context of another '{mine.name}', which was built at another time",
        "remedy": "Make a new context, or run again all that came after building it",
    }


def root_of(system: Any) -> Any:
    """Return the outermost diagram around a system, or the context of that around a context."""
    while system.parent is not None:
        system = system.parent
    return system
