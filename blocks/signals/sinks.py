"""Sinks: blocks without outputs, which record a signal, print it, end a run, or do nothing.

Sinks look when they publish. At an instant at which states are updated too, they see the values
from before the updates.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeAlias

import numpy as np

from flexure.blocks.signals.argument_shapes import refusal, single
from flexure.diagrams.checks.arguments import is_one_of, items_of
from flexure.diagrams.checks.errors import DeclarationError, quoted
from flexure.diagrams.systems.leaf import LeafSystem
from flexure.diagrams.values.arrays import Array, FloatArray, freeze
from flexure.diagrams.values.events import Forced, Periodic, PerStep, Terminate, Trigger, Witness
from flexure.diagrams.values.handles import require_context

if TYPE_CHECKING:
    from flexure.diagrams.contexts.context import Context, LeafContext


#: When a sink looks at its input.
TriggerName: TypeAlias = Literal["forced", "per_step", "periodic"]


class Log:
    """Samples of a vector, in the order in which they were taken.

    Made and filled by `VectorLog`; read it with `VectorLog.find_log`.

    Parameters
    ----------
    size : int
        Number of components.

    See Also
    --------
    VectorLog : A log of a vector.

    Examples
    --------
    >>> import flexure as fx
    >>> log = fx.VectorLog("log", size=1)
    >>> context = log.create_default_context()
    >>> log.u.fix(context, 2.0)
    >>> log.forced_publish(context)
    >>> log.find_log(context).times, log.find_log(context).data
    (array([0.]), array([[2.]]))
    """

    def __init__(self, size: int) -> None:
        self._length = 0
        self._rows = np.empty((16, 1 + size))

    @property
    def times(self) -> FloatArray:
        """Times of the samples, in s, shape (k,); a read-only copy."""
        times: FloatArray = freeze(self._rows[: self._length, 0].copy())
        return times

    @property
    def data(self) -> FloatArray:
        """Samples, shape (k, size); a read-only copy."""
        data: FloatArray = freeze(self._rows[: self._length, 1:].copy())
        return data

    def append(self, time: float, sample: Array) -> None:
        """Add one sample; the cost does not grow with the length."""
        if self._length == len(self._rows):
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
        self._rows[self._length, 0] = time
        self._rows[self._length, 1:] = sample
        self._length += 1

    def extend(self, times: FloatArray, samples: FloatArray) -> None:
        """Add many samples, one row of ``samples`` per time."""
        end = self._length + len(times)
        if end > len(self._rows):
            rows = np.empty((2 * end, self._rows.shape[1]))
            rows[: self._length] = self._rows[: self._length]
            self._rows = rows
        self._rows[self._length : end, 0] = times
        self._rows[self._length : end, 1:] = samples
        self._length = end

    def clear(self) -> None:
        """Delete all samples."""
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        return f"<Log of {self._length} samples of size {self._rows.shape[1] - 1}>"


class VectorLog(LeafSystem):
    """Records a signal together with the time.

    The samples live in the context, in a `Log` per context; a clone has a copy of its own. A
    sample is taken when the block publishes: at an instant at which states are updated too, it
    holds the value from before the updates. Triggers that are due at the same instant take a
    sample each.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    size : int
        Size of the input ``u``.
    period : float, optional
        Time between samples, in s; none for None and 0.
    offset : float
        Time of the first periodic sample, in s.
    triggers : iterable of {"forced", "per_step", "periodic"}, optional
        When samples are taken: when the user asks for it (``system.forced_publish(context)``), at
        the initialization and at every step of the simulator, or periodically. By default "forced"
        and, with a period, "periodic", without one, "per_step".

    Raises
    ------
    DeclarationError
        When the size is no integer, period or offset are out of range, a trigger is unknown, or
        the trigger "periodic" is given without a period, or a period or offset without the
        trigger.

    See Also
    --------
    Printer : Print a signal.
    simulate : Returns all signals of a diagram, without a log.

    Examples
    --------
    >>> import flexure as fx
    >>> log = fx.VectorLog("log", size=2)
    >>> context = log.create_default_context()
    >>> log.u.fix(context, [1.0, 2.0])
    >>> log.forced_publish(context)
    >>> log.find_log(context).data
    array([[1., 2.]])
    """

    def __init__(
        self,
        name: str,
        size: int = 1,
        period: float | None = None,
        offset: float = 0.0,
        triggers: Iterable[TriggerName] | None = None,
    ) -> None:
        super().__init__(name)
        self.u = self.declare_vector_input("u", size)
        self._record = self.declare_record(partial(Log, size))
        for trigger in _triggers(self, period, offset, triggers):
            self.declare_publish(
                self._take_sample, trigger, signal=self.u, record=self._take_samples
            )

    def find_log(self, context: Context) -> Log:
        """Return the log in a context of this block or of a diagram around it.

        Raises
        ------
        ContextError
            When this block is not in the system of the context.
        """
        require_context(context, f"'{self.label}'")
        leaf: Any = context.find(self)
        log: Log = leaf.records[self._record]
        return log

    def _take_sample(self, context: LeafContext) -> None:
        context.records[self._record].append(context.time, self.u(context))

    def _take_samples(self, context: LeafContext, times: FloatArray, values: FloatArray) -> None:
        context.records[self._record].extend(times, values)


def _triggers(
    block: LeafSystem,
    period: float | None,
    offset: float = 0.0,
    names: Iterable[TriggerName] | None = None,
) -> list[Trigger]:
    """Return the triggers of a sink in a fixed order."""
    has_period = period is not None and single(block, "period", period) != 0.0
    has_offset = single(block, "offset", offset) != 0.0
    known: dict[str, Trigger] = {"forced": Forced(), "per_step": PerStep()}
    if has_period:
        known["periodic"] = Periodic(period, offset)  # type: ignore[arg-type]
    chosen: tuple[str, ...] = ("forced", "periodic" if has_period else "per_step")
    if names is not None:
        attempt = f"Cannot make the {type(block).__name__} '{block.name}'"
        several_names = (names,) if isinstance(names, str) else names
        chosen = items_of(several_names, "triggers", attempt, error=DeclarationError)
    unknown = [name for name in chosen if not is_one_of(name, known)]
    if unknown:
        forgot = any(is_one_of(name, ["periodic"]) for name in unknown)
        remedy = "Pass a period as well" if forgot else None
        raise refusal(block, f"triggers among {quoted(known)}", repr(unknown), remedy)
    if (has_period or has_offset) and "periodic" not in chosen:
        expected = "a period together with the trigger 'periodic', and an offset with both"
        found = f"period={period!r}, offset={offset!r}, triggers={chosen!r}"
        raise refusal(block, expected, found)
    return [trigger for name, trigger in known.items() if name in chosen]


class Printer(LeafSystem):
    """Prints a signal, one line per sample.

    A line is written when the block publishes: with a period at its multiples, without one at
    the initialization and at every step of the simulator, and when the user asks for it with
    ``system.forced_publish(context)``. It shows the value from before the updates of the instant.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    size : int
        Size of the input ``u``.
    period : float, optional
        Time between lines, in s; none for None and 0.
    template : str
        Text of a line for ``str.format`` with the fields ``time``, in s, ``value``, a vector, and
        ``path``, that of the block; for example ``"{path}: {value[0]:.3f}"``.
    stream : file object, optional
        Where the lines go. By default to ``sys.stdout`` as it is when a line is written. With
        another stream the diagram can be pickled only if the stream can.

    Raises
    ------
    DeclarationError
        When the size is no integer, the period is negative, the template does not fit the
        fields, or the stream cannot be written to.

    See Also
    --------
    VectorLog : Record a signal.

    Examples
    --------
    >>> import flexure as fx
    >>> printer = fx.Printer("angle", template="{path} = {value[0]:.2f} rad at {time} s")
    >>> context = printer.create_default_context()
    >>> printer.u.fix(context, 0.5)
    >>> printer.forced_publish(context)
    angle = 0.50 rad at 0.0 s
    """

    def __init__(
        self,
        name: str,
        size: int = 1,
        period: float | None = None,
        template: str = "t={time:.6g} {value}",
        stream: TextIO | None = None,
    ) -> None:
        super().__init__(name)
        self.u = self.declare_vector_input("u", size)
        self.template = template
        self.stream = stream
        try:
            self._line(0.0, np.zeros(size))
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            expected = "a template with the fields {time}, {value} and {path}"
            raise refusal(self, expected, f"{template!r} ({error!r})") from None
        if stream is not None and not hasattr(stream, "write"):
            raise refusal(self, "a stream with a method write", repr(stream))
        for trigger in _triggers(self, period):
            self.declare_publish(self._print, trigger)

    def _line(self, time: float, value: Array) -> str:
        return self.template.format(time=time, value=value, path=self.label)

    def _print(self, context: Context) -> None:
        stream = sys.stdout if self.stream is None else self.stream
        stream.write(self._line(context.time, self.u(context)) + "\n")


class StopWhen(LeafSystem):
    """Ends a simulation when a signal rises through zero.

    The run stops at the crossing, located as accurately as witness functions are. A signal that
    is zero or positive from the start must become negative first.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    reason : str
        Why the run ends, for its result.

    Raises
    ------
    DeclarationError
        When the reason is no text.

    See Also
    --------
    simulate : Run a simulation until this block ends it.

    Examples
    --------
    Stop when a height falls to the ground:

    >>> import flexure as fx
    >>> builder = fx.DiagramBuilder("fall")
    >>> builder.add_all(
    ...     fx.Ramp("height", slope=-2.0, initial=1.0),
    ...     fx.Gain("depth", -1.0),
    ...     fx.StopWhen("ground", "the ground is reached"),
    ... )
    >>> builder.connect_chain("height", "depth", "ground")
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name)
        if not isinstance(reason, str):
            raise refusal(self, "a text as the reason", repr(reason))
        self.reason = reason
        self.u = self.declare_vector_input("u", 1)
        self.declare_publish(self._stop, Witness(self._calc_level, "rising"))

    def _calc_level(self, context: Context) -> Array:
        return self.u(context)[0]

    def _stop(self, context: Context) -> Terminate:
        return Terminate(self.reason)


class Terminator(LeafSystem):
    """A sink without effect: it marks an output as intentionally unused.

    Parameters
    ----------
    name : str
        Name within the surrounding diagram.
    size : int
        Size of the input ``u``.

    Raises
    ------
    DeclarationError
        When the size is no integer.

    See Also
    --------
    VectorLog : Record a signal.

    Examples
    --------
    >>> import flexure as fx
    >>> fx.Terminator("unused", size=3).u.size
    3
    """

    def __init__(self, name: str, size: int = 1) -> None:
        super().__init__(name)
        self.u = self.declare_vector_input("u", size)
