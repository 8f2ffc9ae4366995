"""Leaf systems: the base class of every block, and the rules that blocks follow."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from flexure.diagrams import scalars
from flexure.diagrams.checks.errors import DeclarationError, UnknownNameError, suggestion
from flexure.diagrams.systems.declarations import DeclaringSystem
from flexure.diagrams.systems.ports import InputPort, LeafOutputPort
from flexure.diagrams.systems.system import System, check_path
from flexure.diagrams.values.events import Event, Periodic, Witness
from flexure.diagrams.values.handles import put_first

if TYPE_CHECKING:
    from flexure.diagrams.systems.feedthrough import Needs
    from flexure.diagrams.values.arrays import FloatArray
    from flexure.diagrams.values.parameters import NumericParameter

#: How linear models see a hard nonlinearity.
LinearizeAs: TypeAlias = Literal["exact", "gain"]
#: Derivatives by the states and by the inputs of a block.
Slopes: TypeAlias = "tuple[FloatArray, FloatArray]"


class LeafSystem(DeclaringSystem):
    """Base class of every block.

    When you write a block, follow these rules:

    1. The constructor calls ``super().__init__(name)`` first, and declares all that the block has:
       parameters, state, ports, cache entries, events and records. It stores the handles that the
       declarations return; methods read values from a context by them. Structural values, such as
       sizes and periods, are plain attributes that never change.
    2. A block with continuous state implements `calc_time_derivatives`, which returns the
       derivatives of (q, v, z).
    3. An output and a cache entry have a function ``calc(context)``, which returns the value. A
       vector, that of the derivatives included, is returned as an array of the declared size, as a
       number for size 1, or as a list of numbers and vectors, which are laid end to end.
    4. An event has a handler, which is called with the context. The handler of an update
       returns new values, ``{state handle: value}``; the handler of a publish may write to its
       record and return `Terminate`. A witness function returns a number that is continuous
       between events.
    5. A block whose equations jump or bend at known times returns the next one from
       `calc_next_break_time`.
    6. All of these functions are pure. Their results depend on the context alone, and they change
       nothing: everything that varies is state, never an attribute.
    7. The functions of 2 to 4 except publish handlers, and those of a projection, are written in
       NumPy for one sample, and do the same operations whatever the values are: ``np.where`` and
       not ``if``. Branches on values are followed both ways, but branches in branches multiply.
    8. An output and a cache entry read no more than their prerequisites, and parameters. Declared
       ones are exact: too many of them make algebraic loops, and too few stale values.
    9. Attributes and functions can be pickled: methods, functions of modules and partials of both,
       no lambdas. Otherwise the block cannot be saved, or sent to another process.

    In return,

    10. every value that a handle reads has the declared size; a parameter is within its bounds,
        and a state that was set is finite. Updates of one kind that are due at one instant all see
        the values before the first of them.
    11. Nothing integrates across a break time. Up to it the equations have the old value, and from
        there on the new one.
    12. One block serves any number of contexts and threads at once. Its functions may be run on
        numbers, on symbols or on many samples at once, in any order, more or less often than
        expected, or not at all if compiled code computes their values.

    A block that breaks rule 7 is interpreted, and slower; a block that breaks rule 6 or 8 gives
    wrong numbers. ``tests/contracts/test_every_block.py`` checks 1 and 5 to 9 on every block of the
    library.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.

    See Also
    --------
    FunctionBlock : A block made of a function.
    Diagram : Blocks wired together.

    Examples
    --------
    >>> import numpy as np
    >>> import flexure as fx
    >>> class Pendulum(fx.LeafSystem):
    ...     def __init__(self, name: str = "pendulum", length: float = 1.0) -> None:
    ...         super().__init__(name)
    ...         self.length = self.declare_numeric_parameter(
    ...             "length", length, unit="m", lower=0.0, doc="pivot to mass"
    ...         )
    ...         self.state = self.declare_continuous_state(q=1, v=1)
    ...         self.angle = self.declare_vector_output("angle", 1, self.state.q, unit="rad")
    ...
    ...     def calc_time_derivatives(self, context):
    ...         angle, rate = self.state(context)
    ...         return [rate, -9.81 / self.length(context) * np.sin(angle)]
    >>> pendulum = Pendulum()
    >>> context = pendulum.create_default_context()
    >>> pendulum.state.set(context, [0.5, 0.0])
    >>> pendulum.eval_time_derivatives(context).round(3)
    array([ 0.   , -4.703])
    """

    known_needs: dict[Any, Needs]
    #: How linear models see the block: "exact", or "gain" where `with_slope_of` replaces slopes.
    linearize_as: LinearizeAs = "exact"

    #: Whether an output jumps while its inputs do not, and no event marks the instant.
    has_jumps: ClassVar[bool] = False

    def __init__(self, name: str) -> None:
        super().__init__(name)
        put_first(self, "known_needs", {})

    # To be overridden ----------------------------------------------------------------------

    def calc_time_derivatives(self, context: Any) -> Any:
        """Return the time derivative of the continuous state ``(q, v, z)``.

        Blocks with continuous state override this method. To get the numbers of any system, call
        `eval_time_derivatives`.
        """
        raise DeclarationError(
            f"Cannot compute the time derivatives of '{self.label}'",
            expected=f"a method calc_time_derivatives(self, context) in {type(self).__name__}",
            found="none, although continuous state is declared",
        )

    def calc_next_break_time(self, context: Any) -> float:
        """Return the next time, later than ``context.time``, at which an equation is not smooth.

        Integrators stop exactly there. Blocks whose equations jump or bend at known times
        override this method; without such times the answer is infinity.
        """
        return math.inf

    def calc_slopes(self, context: Any, output: LeafOutputPort | None) -> Slopes | None:
        """Return the derivatives of an output, or of the time derivatives, by states and inputs.

        Linear models ask for them where an equation cannot be traced. Blocks that call programs
        with derivatives of their own override this method.

        Parameters
        ----------
        context : Context
            The values.
        output : LeafOutputPort or None
            The output; None for the time derivatives.

        Returns
        -------
        tuple of ndarray or None
            Matrices with one column per state of the block, and one per component of all of its
            inputs; None if they are not known, and differences are to be taken.
        """
        return None

    def linear_remark(self, context: Any) -> str | None:
        """Return the reason why small input changes do not pass the block; None if they do.

        Blocks that saturate, round or switch override this method. Linear models, and margins and
        poles that are found with them, name the block with this remark.
        """
        return None

    # For equations -------------------------------------------------------------------------

    def with_slope_of(self, value: Any, through: Any) -> Any:
        """Return a value which linear models differentiate as another one.

        Blocks with a hard nonlinearity call this in their equations. The slope is replaced in
        linear models alone, and only if ``linearize_as`` is "gain". The value always is the first
        one, and so are slopes in simulations, sensitivities, fits and optimizations.

        Parameters
        ----------
        value : float or array
            What is returned.
        through : float or array
            What it would be without the nonlinearity, of the same shape.
        """
        return scalars.with_slope_of(value, through) if self.linearize_as == "gain" else value

    @property
    def restricts_starts(self) -> bool:
        """Whether `check_start` may refuse a context."""
        return False

    @property
    def start_parameters(self) -> tuple[NumericParameter, ...] | None:
        """The parameters at whose defaults `check_start` refuses nothing; None for unknown ones."""
        return None

    def check_start(self, context: Any) -> None:
        """Refuse values of a context from which no motion can start.

        Simulations ask this after the initialization events, and linear models and modes of their
        point. Blocks whose states have to fit each other override it, and `restricts_starts`.

        Raises
        ------
        EvaluationError
            When the values do not fit; the text names what, and the way out.
        """

    def check_accuracy(self, context: Any) -> None:
        """Warn of computed values of a context that are not accurate.

        Those who ask for an output that needs a start get such warnings. Blocks that restrict
        starts may override it.
        """

    def longest_step(self, context: Any) -> float:
        """Return the longest fixed step in s that follows what comes and goes, such as impacts.

        Simulations with fixed steps that are more than twice as long warn of it.
        """
        return math.inf

    def start_limits(self, context: Any) -> Iterable[tuple[str, Any, Any]]:
        """Return what `check_start` compares, for programs that compare it without Python.

        Each is what it is in words, its value, and the largest value with which a motion may begin;
        numbers, or symbols for symbols.
        """
        return []

    @property
    def prepares_starts(self) -> bool:
        """Whether `prepare_start` may change states."""
        return False

    def prepare_start(self, context: Any) -> None:
        """Change the states of a context so that a motion can start from them.

        Motions ask this after the initialization events, and before `check_start`. Blocks whose
        states have to fit each other may override it, and `prepares_starts`.

        Raises
        ------
        EvaluationError
            When there are no such states.
        """

    def unit_relations(self) -> Iterable[tuple[Any, ...]]:
        """Return which ports and states have equal units, or units that follow from each other.

        Blocks that work in any unit override this method, so that labels have the units that
        follow from wires. Nothing is computed from it.

        Returns
        -------
        iterable of tuple
            Each holds handles of ports and states of equal size, which have one unit; a pair of a
            handle and a slice, or indices, means components. With a text at the end, those after
            the first have the unit of the first times that: ``(self.u, self.x, "s")`` of an
            integrator.
        """
        return ()

    # Queries -------------------------------------------------------------------------------

    def _freeze(self) -> None:
        if self._frozen:
            return
        overridden = type(self).calc_time_derivatives is not LeafSystem.calc_time_derivatives
        if self.continuous_state is not None and not overridden:
            self.calc_time_derivatives(None)
        self._frozen = True

    def derivatives_name(self) -> str:
        """Name the derivative method for messages."""
        return f"calc_time_derivatives of '{self.label}'"

    @property
    def has_break_times(self) -> bool:
        """Whether the block declares times at which its equations are not smooth."""
        return type(self).calc_next_break_time is not LeafSystem.calc_next_break_time

    def random_handles(self) -> list[Any]:
        """Return the handles with a declared distribution, in the order of their declaration."""
        handles = self._names.values()
        return [each for each in handles if getattr(each, "distribution", None) is not None]

    def get_system(self, path: str) -> System:
        """Return this block for the empty path; there is nothing below a leaf."""
        if path == "":
            return self
        raise UnknownNameError(
            f"Cannot find '{path}' below '{self.label}'",
            expected="a diagram",
            found=f"the block '{self.label}', which has no blocks inside",
        )

    def named_port(self, name: str) -> InputPort | LeafOutputPort | None:
        """Return the port of this block with a name, or None."""
        item = self._names.get(name)
        return item if isinstance(item, (InputPort, LeafOutputPort)) else None

    def find(self, path: str, takes: Callable[[Any], bool] | None = None) -> Any:
        """Return the parameter, state, cache entry or port of this block by its name."""
        check_path(path, self)
        try:
            return self._names[path]
        except KeyError:
            valid = [name for name, handle in self._names.items() if not takes or takes(handle)]
            raise UnknownNameError(
                f"Cannot find '{path}' in '{self.label}'", remedy=suggestion(path, valid)
            ) from None

    @property
    def feedthrough(self) -> frozenset[tuple[str, str]]:
        """Pairs (input name, output name) in which the output needs the input at once."""
        from flexure.diagrams.systems.feedthrough import input_closure as reads

        self._freeze()
        inputs, outputs = self._input_ports, self._output_ports
        return frozenset((inputs[k].name, port.name) for port in outputs for k in reads(port))

    @property
    def periods(self) -> tuple[float, ...]:
        """The different periods of the periodic events."""
        found = {e.trigger.period for e in self.events if isinstance(e.trigger, Periodic)}
        return tuple(sorted(found))

    @property
    def witnesses(self) -> list[Event]:
        """Events with a witness function, in the order of their declaration."""
        return [event for event in self.events if isinstance(event.trigger, Witness)]
