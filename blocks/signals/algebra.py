"""Blocks without memory that add, multiply, route or compute: the glue of a diagram.

Every output follows its inputs at once. Ports are ``u`` (or ``u1``, ``u2``, ...) and ``y`` (or
``y1``, ``y2``, ...); their handles, and those of parameters, are attributes of the same name, but
numbered ports are in the lists ``inputs`` and ``outputs``. Where a parameter can be a scalar or a
vector, a scalar applies to every component.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from flexure.blocks.signals.argument_shapes import common_size, flag, numbers, refusal
from flexure.diagrams.checks.arguments import is_whole
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.systems.ports import TIME, InputPort, Prerequisite
from flexure.diagrams.values.arrays import Array, check_size, freeze


class Gain(LeafSystem):
    """Gain: multiplies the input by a constant, by component, ``y = gain u``.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    gain : float or array_like, shape (size,)
        Factor, the parameter ``gain``, in units of y per unit of u.
    size : int, optional
        Size of u and y; by default that of ``gain``.
    unit : str
        Unit of the gain, such as ``"N/m"``, from which labels know that of y by that of u;
        ``"1"`` says that they are the same.

    Raises
    ------
    DeclarationError
        When ``gain`` is neither a scalar nor a vector of ``size``.

    See Also
    --------
    MatrixGain : Matrix gain.

    Examples
    --------
    >>> import flexure as fx
    >>> gain = fx.Gain("gain", [2.0, -1.0])
    >>> context = gain.create_default_context()
    >>> gain.u.fix(context, [3.0, 4.0])
    >>> gain.y(context)
    array([ 6., -4.])
    """

    def __init__(
        self, name: str, gain: npt.ArrayLike, size: int | None = None, *, unit: str = ""
    ) -> None:
        super().__init__(name)
        size = common_size(self, size, gain=gain)
        self.gain = self.declare_numeric_parameter("gain", gain, unit=unit, doc="factor")
        self.u = self.declare_vector_input("u", size)
        self.y = self.declare_vector_output("y", size, self.calc_y, prerequisites=[self.u])

    def unit_relations(self) -> Iterable[tuple[Any, ...]]:
        """Return that output and input differ by the unit of the gain, if that is known."""
        return [(self.u, self.y, self.gain.unit)] if self.gain.unit else []

    def calc_y(self, context: Any) -> Array:
        """Return gain u."""
        return self.gain(context) * self.u(context)


class MatrixGain(LeafSystem):
    """Matrix gain: multiplies the input by a constant matrix, ``y = matrix @ u``.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    matrix : array_like, shape (m, n)
        The parameter ``matrix``; u has size n and y has size m.

    Raises
    ------
    DeclarationError
        When ``matrix`` has not two axes.

    See Also
    --------
    Gain : Gain.

    Examples
    --------
    >>> import flexure as fx
    >>> swap = fx.MatrixGain("swap", [[0.0, 1.0], [1.0, 0.0]])
    >>> context = swap.create_default_context()
    >>> swap.u.fix(context, [3.0, 4.0])
    >>> swap.y(context)
    array([4., 3.])
    """

    def __init__(self, name: str, matrix: npt.ArrayLike) -> None:
        super().__init__(name)
        shape = numbers(self, "matrix", matrix).shape
        if len(shape) != 2:
            raise refusal(self, "a matrix of shape (m, n)", f"shape {shape}")
        self.matrix = self.declare_numeric_parameter(
            "matrix", matrix, doc="factor from the left", sparse=True
        )
        self.u = self.declare_vector_input("u", shape[1])
        self.y = self.declare_vector_output("y", shape[0], self.calc_y, prerequisites=[self.u])

    def calc_y(self, context: Any) -> Array:
        """Return the product of matrix and input."""
        return self.matrix(context) @ self.u(context)


class _Chain(LeafSystem):
    """Inputs u1, u2, ... that are combined from left to right, each by its own operation."""

    _first: ClassVar[Mapping[str, Callable[[Any], Any]]]
    _rest: ClassVar[Mapping[str, Callable[[Any, Any], Any]]]

    def __init__(self, name: str, operations: str, size: int) -> None:
        super().__init__(name)
        if not _is_made_of(operations, self._rest):
            expected = f"a string of {' and '.join(map(repr, self._rest))}, one per input"
            raise refusal(self, expected, repr(operations))
        self.inputs = _numbered_inputs(self, [size] * len(operations))
        self._start = self._first[operations[0]]
        self._steps = [self._rest[operation] for operation in operations[1:]]
        self.y = self.declare_vector_output("y", size, self.calc_y, prerequisites=self.inputs)

    def calc_y(self, context: Any) -> Array:
        """Return the inputs combined."""
        result = self._start(self.inputs[0](context))
        for step, port in zip(self._steps, self.inputs[1:], strict=True):
            result = step(result, port(context))
        return result


class Sum(_Chain):
    """Sum: adds and subtracts inputs, ``y = ± u1 ± u2 ± ...``, from left to right.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    signs : str
        One ``"+"`` or ``"-"`` for each of the inputs ``u1``, ``u2``, ...
    size : int
        Size of every input and of y.

    Raises
    ------
    DeclarationError
        When ``signs`` is empty or has other characters.

    See Also
    --------
    Product : Product.

    Examples
    --------
    >>> import flexure as fx
    >>> error = fx.Sum("error", "+-")
    >>> context = error.create_default_context()
    >>> context.set("u1", 5.0)
    >>> context.set("u2", 2.0)
    >>> error.y(context)
    array([3.])
    """

    _first: ClassVar = {"+": operator.pos, "-": operator.neg}
    _rest: ClassVar = {"+": operator.add, "-": operator.sub}

    def __init__(self, name: str, signs: str = "++", size: int = 1) -> None:
        super().__init__(name, signs, size)

    def unit_relations(self) -> Iterable[tuple[Any, ...]]:
        """Return that all ports have one unit."""
        return [(*self.inputs, self.y)]


class Product(_Chain):
    """Product: multiplies and divides inputs by component, ``y = u1 u2 / u3 ...``.

    The operations run from left to right; a leading ``"/"`` gives ``1 / u1``.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    factors : str
        One ``"*"`` or ``"/"`` for each of the inputs ``u1``, ``u2``, ...
    size : int
        Size of every input and of y.

    Raises
    ------
    DeclarationError
        When ``factors`` is empty or has other characters.

    See Also
    --------
    Sum : Sum.

    Notes
    -----
    Division by zero follows IEEE 754: the result is infinite, or NaN for 0/0, and NumPy issues
    its ``RuntimeWarning``.

    Examples
    --------
    >>> import flexure as fx
    >>> ratio = fx.Product("ratio", "*/")
    >>> context = ratio.create_default_context()
    >>> context.set("u1", 5.0)
    >>> context.set("u2", 2.0)
    >>> ratio.y(context)
    array([2.5])
    """

    _first: ClassVar = {"*": operator.pos, "/": np.reciprocal}
    _rest: ClassVar = {"*": operator.mul, "/": operator.truediv}

    def __init__(self, name: str, factors: str = "**", size: int = 1) -> None:
        super().__init__(name, factors, size)


class Multiplexer(LeafSystem):
    """Multiplexer: joins inputs end to end, ``y = (u1, u2, ...)``.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    sizes : iterable of int
        Sizes of the inputs ``u1``, ``u2``, ...; y has their sum.

    Raises
    ------
    DeclarationError
        When there are no sizes, or one is no integer >= 0.

    See Also
    --------
    Demultiplexer : Demultiplexer.

    Examples
    --------
    >>> import flexure as fx
    >>> join = fx.Multiplexer("join", [1, 2])
    >>> context = join.create_default_context()
    >>> context.set("u1", 1.0)
    >>> context.set("u2", [2.0, 3.0])
    >>> join.y(context)
    array([1., 2., 3.])
    """

    def __init__(self, name: str, sizes: Iterable[int]) -> None:
        super().__init__(name)
        sizes = _entries(self, sizes, "sizes")
        self.inputs = _numbered_inputs(self, sizes)
        self.y = self.declare_vector_output("y", sum(sizes), self.calc_y, prerequisites=self.inputs)

    def unit_relations(self) -> Iterable[tuple[Any, ...]]:
        """Return that each part of the output has the unit of its input."""
        ends = np.cumsum([port.size for port in self.inputs]).tolist()
        return [
            (port, (self.y, slice(end - (port.size or 0), end)))
            for port, end in zip(self.inputs, ends, strict=True)
        ]

    def calc_y(self, context: Any) -> Array:
        """Return the inputs end to end."""
        return np.concatenate([port(context) for port in self.inputs])


class Demultiplexer(LeafSystem):
    """Demultiplexer: cuts the input into consecutive parts, ``(y1, y2, ...) = u``.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    sizes : iterable of int
        Sizes of the outputs ``y1``, ``y2``, ...; u has their sum.

    Raises
    ------
    DeclarationError
        When there are no sizes, or one is no integer >= 0.

    See Also
    --------
    Multiplexer : Multiplexer.
    Selector : Selector.

    Examples
    --------
    >>> import flexure as fx
    >>> split = fx.Demultiplexer("split", [1, 2])
    >>> context = split.create_default_context()
    >>> split.u.fix(context, [1.0, 2.0, 3.0])
    >>> context.get("y1"), context.get("y2")
    (array([1.]), array([2., 3.]))
    """

    def __init__(self, name: str, sizes: Iterable[int]) -> None:
        super().__init__(name)
        sizes = [check_size(size, f"'{name}'") for size in _entries(self, sizes, "sizes")]
        self.u = self.declare_vector_input("u", sum(sizes))
        ends = np.cumsum(sizes).tolist()
        self.outputs = [
            self.declare_vector_output(
                f"y{k}", size, partial(self.calc_part, end - size, end), prerequisites=[self.u]
            )
            for k, (size, end) in enumerate(zip(sizes, ends, strict=True), start=1)
        ]

    def unit_relations(self) -> Iterable[tuple[Any, ...]]:
        """Return that each output has the unit of its part of the input."""
        ends = np.cumsum([port.size for port in self.outputs]).tolist()
        return [
            (port, (self.u, slice(end - (port.size or 0), end)))
            for port, end in zip(self.outputs, ends, strict=True)
        ]

    def calc_part(self, start: int, end: int, context: Any) -> Array:
        """Return the components of the input from ``start`` up to ``end``."""
        return self.u(context)[start:end]


class Selector(LeafSystem):
    """Selector: picks components of the input in any order, ``y = u[indices]``.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    size : int
        Size of u.
    indices : iterable of int
        Positions in u, from 0 to ``size - 1``; repetitions are fine. y has as many components.

    Raises
    ------
    DeclarationError
        When there are no indices, or one is outside of u.

    See Also
    --------
    Demultiplexer : Demultiplexer.

    Examples
    --------
    >>> import flexure as fx
    >>> pick = fx.Selector("pick", 3, [2, 0])
    >>> context = pick.create_default_context()
    >>> pick.u.fix(context, [1.0, 2.0, 3.0])
    >>> pick.y(context)
    array([3., 1.])
    """

    def __init__(self, name: str, size: int, indices: Iterable[int]) -> None:
        super().__init__(name)
        self.u = self.declare_vector_input("u", size)
        indices = _entries(self, indices, "indices")
        if not all(is_whole(index) and 0 <= index < size for index in indices):
            raise refusal(self, f"integer indices from 0 to {size - 1}", repr(indices))
        self.indices: npt.NDArray[np.intp] = freeze(np.array(indices, dtype=np.intp))
        self.y = self.declare_vector_output("y", len(indices), self.calc_y, prerequisites=[self.u])

    def unit_relations(self) -> Iterable[tuple[Any, ...]]:
        """Return that each component has the unit of the one that it is picked from."""
        return [((self.u, [k]), (self.y, [n])) for n, k in enumerate(self.indices.tolist())]

    def calc_y(self, context: Any) -> Array:
        """Return the picked components."""
        return self.u(context)[self.indices]


class PassThrough(LeafSystem):
    """Pass-through: returns the input unchanged, ``y = u``; a junction with a name.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    size : int
        Size of u and y.

    Raises
    ------
    DeclarationError
        When ``size`` is no integer >= 0.

    See Also
    --------
    Gain : Multiply a signal by a constant.

    Examples
    --------
    >>> import flexure as fx
    >>> junction = fx.PassThrough("junction")
    >>> context = junction.create_default_context()
    >>> junction.u.fix(context, 3.0)
    >>> junction.y(context)
    array([3.])
    """

    def __init__(self, name: str, size: int = 1) -> None:
        super().__init__(name)
        self.u = self.declare_vector_input("u", size)
        self.y = self.declare_vector_output("y", size, self.u, prerequisites=[self.u])

    def unit_relations(self) -> Iterable[tuple[Any, ...]]:
        """Return that output and input have one unit."""
        return [(self.u, self.y)]


class PortSwitch(LeafSystem):
    """Switch: passes the input whose number arrives at the input ``select``.

    ``y = u1`` for ``select < 2``, ``y = u2`` for ``2 <= select < 3``, ..., ``y = uk`` for
    ``select >= k``: the number is rounded down, and limited to the inputs there are.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    num_inputs : int
        Number k >= 2 of the inputs ``u1``, ``u2``, ...
    size : int
        Size of each of them and of y.

    Raises
    ------
    DeclarationError
        When ``num_inputs`` is no integer >= 2.

    See Also
    --------
    Relay : Switch between two values by a signal.

    Notes
    -----
    All inputs are computed, also those that do not pass, so y has feedthrough from each of them
    and from ``select``. When ``select`` is NaN, so is y. When ``select`` is a continuous signal, y
    jumps where no event tells the integrator; let it come from discrete state, or from a source
    with known break times.

    Examples
    --------
    >>> import flexure as fx
    >>> switch = fx.PortSwitch("switch")
    >>> context = switch.create_default_context()
    >>> for path, value in {"u1": 10.0, "u2": 20.0, "select": 2.7}.items():
    ...     context.set(path, value)
    >>> switch.y(context)
    array([20.])
    """

    def __init__(self, name: str, num_inputs: int = 2, size: int = 1) -> None:
        super().__init__(name)
        if not (is_whole(num_inputs) and num_inputs >= 2):
            raise refusal(self, "num_inputs to be an integer >= 2", repr(num_inputs))
        count = check_size(num_inputs, f"'{name}'")
        self.inputs = _numbered_inputs(self, [size] * count)
        self.select = self.declare_vector_input("select", 1, doc="number of the input that passes")
        self.y = self.declare_vector_output(
            "y", size, self.calc_y, prerequisites=[*self.inputs, self.select]
        )

    def unit_relations(self) -> Iterable[tuple[Any, ...]]:
        """Return that the output and the inputs that can pass have one unit."""
        return [(*self.inputs, self.y)]

    def calc_y(self, context: Any) -> Array:
        """Return the selected input."""
        select = self.select(context)
        y = np.where(select < 2.0, self.inputs[0](context), np.nan)
        for number, port in enumerate(self.inputs[1:], start=2):
            y = np.where(select >= number, port(context), y)
        return y


class FunctionBlock(LeafSystem):
    """A block that applies a Python function to its inputs: ``y = function(u)``.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    function : callable
        ``function(u)``, or ``function(first, second, ...)`` with the inputs in the order of
        ``inputs``. Each argument is a read-only vector. The result is a vector of
        ``output_size``, a list of numbers and vectors that make one, or a number for size 1.
    inputs : int or mapping of str to int
        Size of the only input ``u``, or the size of each input by its name.
    output_size : int
        Size of y.
    with_time : bool
        Whether the function takes the time in seconds as its first argument.

    Raises
    ------
    DeclarationError
        When ``function`` cannot be called, or a name or size is not acceptable.

    See Also
    --------
    TimeFunction : A function of time.
    LeafSystem : Base class of blocks with parameters and states.

    Notes
    -----
    The function must depend on its arguments alone: its results are kept for as long as they stay
    the same. Write it in NumPy without branches on values (``np.where`` instead of ``if``), and it
    can be traced, differentiated and compiled like any block; any other function works too, but
    is called by the interpreter each time. y has feedthrough from every input. A system with a
    function from inside of another function (a lambda, say) cannot be pickled.

    Examples
    --------
    >>> import flexure as fx
    >>> torque = fx.FunctionBlock(
    ...     "torque",
    ...     lambda angle, rate: -3.0 * np.sin(angle) - 0.1 * rate,
    ...     inputs={"angle": 1, "rate": 1},
    ... )
    >>> context = torque.create_default_context()
    >>> context.set("angle", np.pi / 2.0)
    >>> context.set("rate", 10.0)
    >>> torque.y(context)
    array([-4.])
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        inputs: int | Mapping[str, int] = 1,
        output_size: int = 1,
        *,
        with_time: bool = False,
    ) -> None:
        super().__init__(name)
        if not callable(function):
            raise refusal(self, "a function", repr(function))
        self.function = function
        self.with_time = flag(self, "with_time", with_time)
        sizes = inputs if isinstance(inputs, Mapping) else {"u": inputs}
        self.inputs = [self.declare_vector_input(port, size) for port, size in sizes.items()]
        clock: list[Prerequisite] = [TIME] if with_time else []
        self.y = self.declare_vector_output(
            "y", output_size, self.calc_y, prerequisites=[*clock, *self.inputs]
        )

    def calc_y(self, context: Any) -> Array:
        """Return what the function returns."""
        clock = [context.time] if self.with_time else []
        result = self.function(*clock, *[port(context) for port in self.inputs])
        # Results are made read-only, and an array may still belong to the function.
        return result.copy() if isinstance(result, np.ndarray) else result


def _numbered_inputs(block: LeafSystem, sizes: Iterable[int]) -> list[InputPort]:
    """Declare the inputs u1, u2, ... of a block."""
    return [
        block.declare_vector_input(f"u{number}", size) for number, size in enumerate(sizes, start=1)
    ]


def _entries(block: LeafSystem, values: object, what: str) -> list[int]:
    """Return the entries of a sequence that must not be empty."""
    entries = list(values) if np.iterable(values) else []
    if not entries:
        raise refusal(block, f"a sequence of {what}", repr(values))
    return entries


def _is_made_of(text: object, letters: Mapping[str, object]) -> bool:
    """Return whether something is a text of some letters."""
    return isinstance(text, str) and text != "" and set(text) <= set(letters)
