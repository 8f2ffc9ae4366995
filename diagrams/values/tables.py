"""Tables for people: named columns, rows of anything, and a text that fits the screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, overload

import numpy as np

from flexure.diagrams.checks.arguments import import_extra, is_whole, require
from flexure.diagrams.checks.errors import UnknownNameError, suggestion
from flexure.diagrams.interface.html import Shown, note, rows_of
from flexure.diagrams.values.arrays import equal

WIDTH = 100  # of the text, in characters
_ROWS = 60  # that a table shows where nobody asked for its text
_NARROW = 9  # what is left of a column that has to give way
_GAP = "  "


class Bounds(NamedTuple):
    """The bounds of a value, element by element; a bound that is infinite excludes nothing."""

    lower: Any
    upper: Any
    exclusive: bool

    def __str__(self) -> str:
        """Write an interval, a comparison where one side is open, and nothing where both are."""
        below, above = np.max(self.lower) > -np.inf, np.min(self.upper) < np.inf
        if below and above:
            left, right = "()" if self.exclusive else "[]"
            return f"{left}{_number(self.lower)}, {_number(self.upper)}{right}"
        sign = "" if self.exclusive else "="
        if below:
            return f">{sign} {_number(self.lower)}"
        return f"<{sign} {_number(self.upper)}" if above else ""


class Table(Shown):
    """Rows with named columns, as `System.parameters` and others return them.

    Going through it gives one dictionary per row. ``table["path"]`` is a column as a list,
    ``table[3]`` a row, and ``table[2:5]`` a table of some rows. Tables are equal when columns and
    values are. ``print`` shows all rows; what a notebook or an interpreter shows leaves out those
    in the middle of a long table. Texts have at most 100 columns, for which long arrays and long
    texts are shortened; the values in the table are not.

    Parameters
    ----------
    columns : iterable of str
        Names of the columns.
    rows : iterable of sequences
        A value for each column.

    See Also
    --------
    System.parameters : The parameters of a system.

    Examples
    --------
    >>> import flexure as fx
    >>> table = fx.Gain("gain", 4.0).parameters()
    >>> table.columns
    ('path', 'default', 'unit', 'bounds', 'doc')
    >>> table["path"], table[0]["doc"]
    (['gain'], 'factor')
    """

    def __init__(self, columns: Iterable[str], rows: Iterable[Sequence[Any]]) -> None:
        self.columns = tuple(columns)
        self._rows = [tuple(row) for row in rows]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (dict(zip(self.columns, row, strict=True)) for row in self._rows)

    @overload
    def __getitem__(self, key: str) -> list[Any]: ...
    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice) -> Table: ...

    def __getitem__(self, key: str | int | slice) -> Any:
        """Return a column by its name, a row by its number, or some rows as a table."""
        if isinstance(key, slice):
            return Table(self.columns, self._rows[key])
        if isinstance(key, (int, np.integer)):
            return dict(zip(self.columns, self._rows[key], strict=True))
        index = self._index(key)
        return [row[index] for row in self._rows]

    def where(self, **values: Any) -> Table:
        """Return the rows that have given values, as in ``table.where(kind="output")``."""
        wanted = [(self._index(column), value) for column, value in values.items()]
        rows = [row for row in self._rows if all(equal(row[k], value) for k, value in wanted)]
        return Table(self.columns, rows)

    def _index(self, column: object) -> int:
        attempt = "Cannot find a column of a table"
        require(isinstance(column, str), column, attempt, "its name", error=UnknownNameError)
        if column not in self.columns:
            raise UnknownNameError(attempt, remedy=suggestion(str(column), self.columns))
        return self.columns.index(str(column))

    def _ipython_key_completions_(self) -> list[str]:
        return [*self.columns]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table):
            return NotImplemented
        return self.columns == other.columns and equal(self._rows, other._rows)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return self._text(self._rows)

    def __repr__(self) -> str:
        if len(self) <= _ROWS:
            return self._text(self._rows)
        half = _ROWS // 2
        note = f"... {len(self) - 2 * half} more rows; print() shows all ..."
        return self._text([*self._rows[:half], note, *self._rows[-half:]])

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame; for that, install ``flexure[data]``."""
        data = {column: self[column] for column in self.columns}
        return import_extra("pandas").DataFrame(data, columns=list(self.columns))

    def _pieces(self) -> Iterator[str]:
        yield self.to_html(_ROWS)

    def to_html(self, most: int | None = None) -> str:
        """Return the rows as a table in HTML, in which all texts are escaped.

        Parameters
        ----------
        most : int, optional
            How many rows; those in the middle of a longer table are left out, with a note. All when
            omitted.
        """
        fits = most is None or (is_whole(most) and most >= 0)
        require(fits, most, "Cannot write a table", "the number of rows as an integer >= 0")
        count = len(self) if most is None else min(most, len(self))
        first = self._rows[: count - count // 2]
        last = self._rows[len(self) - count // 2 :]
        if not self._rows:
            return note(self._text([]))
        texts = [tuple(map(cell_text, row)) for row in (*first, *last)]
        left_out = len(self) - count
        if left_out:
            texts.insert(len(first), ("...", *("" for _ in self.columns[1:])))
        columns = zip(*self._rows, strict=True)
        numeric = [k for k, column in enumerate(columns) if _is_numeric(column)]
        html = rows_of(texts, self.columns, numeric=numeric)
        return html + note(f"{left_out} more rows; print() shows all") if left_out else html

    def _text(self, rows: Sequence[tuple[Any, ...] | str]) -> str:
        """Return a line for the names of the columns and one for each row; a text is a line."""
        if not rows:
            return f"(no rows of {', '.join(self.columns)})"
        cells = [row if isinstance(row, str) else tuple(map(cell_text, row)) for row in rows]
        table = [self.columns, *(row for row in cells if not isinstance(row, str))]
        widths = _fitting([max(map(len, column)) for column in zip(*table, strict=True)])
        lines = [_line(self.columns, widths), _GAP.join("-" * width for width in widths)]
        lines += [row if isinstance(row, str) else _line(row, widths) for row in cells]
        return "\n".join(lines)


def _fitting(widths: list[int]) -> list[int]:
    """Return the widths of columns in a text that is not too wide."""
    # The last one, which is for remarks, gives way first, then the widest one each time. The first
    # one is what rows are called by and gives way last.
    widths, last = list(widths), len(widths) - 1
    for _ in range(sum(widths) + len(_GAP) * last - WIDTH):
        wide = [k for k in range(1, last) if widths[k] > _NARROW]
        k = last if widths[last] > _NARROW else max(wide, key=widths.__getitem__, default=0)
        widths[k] -= 1
    return widths


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return cells side by side; what does not fit is cut off, of the first one its beginning."""
    first, *others = (
        cell if len(cell) <= width else f"{cell[: width - 3]}..."
        for cell, width in zip(cells, widths, strict=True)
    )
    if first != cells[0]:
        first = f"...{cells[0][3 - widths[0] :]}"
    padded = (f"{c:<{w}}" for c, w in zip((first, *others), widths, strict=True))
    return _GAP.join(padded).rstrip()


def cell_text(value: Any) -> str:
    """Return what a cell shows of a value, on one line and not too long."""
    if isinstance(value, bool | None):
        return "*" if value else ""
    if isinstance(value, (float, np.floating, np.ndarray)):
        return _number(value)
    return " ".join(str(value).split())


def _is_numeric(column: Sequence[Any]) -> bool:
    """Return whether a column is one of numbers, some of which may be missing."""
    there = [value for value in column if value is not None]
    return bool(there) and all(
        isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
        for value in there
    )


def _number(value: Any) -> str:
    """Return a number, or the beginning of an array with its shape."""
    array = np.asarray(value)
    if array.ndim == 0:
        return f"{array[()]:.6g}"
    if array.size <= 4:
        return f"[{', '.join(map(_number, array))}]"
    shape, flat = " x ".join(map(str, array.shape)), array.reshape(-1)
    if np.all(flat == flat[0]):
        return f"all {flat[0]:.6g}, {shape}"
    return f"[{', '.join(f'{each:.6g}' for each in flat[:3])}, ...], {shape}"
