"""Base class of typeset formulas in any language: choices in rows, names with subscripts."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import ClassVar

from flexure.diagrams.scalars.notations.notation import Level, Notation, Phrase

GREEK = (
    *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"),
    *("lambda", "mu", "nu", "xi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega"),
    *("Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi", "Psi", "Omega"),
)
#: A letter, and what is to be its subscript: digits, or what follows an underscore.
_LETTER = re.compile(rf"({'|'.join(GREEK)}|[^\W\d_])(?:_?(\d+)|_(\w+))?")


class Typeset(Notation):
    """Mathematics as it is set, beyond what every notation has.

    Its ``forms`` have one for "multiply by digits", which keeps the digits of two numbers apart.
    """

    opening: ClassVar[str]  # of a choice
    closing: ClassVar[str]
    between_rows: ClassVar[str]

    @abstractmethod
    def begins_with_digit(self, text: str) -> bool:
        """Return whether a text looks like a continuation of a number in front of it."""

    @abstractmethod
    def case(self, value: str, condition: str | None) -> str:
        """Write a row of a choice; the last one has no condition."""

    @abstractmethod
    def letter(self, name: str) -> str:
        """Write a single letter, Latin, or Greek by its name."""

    @abstractmethod
    def word(self, text: str) -> str:
        """Write something upright."""

    @abstractmethod
    def indices(self, text: str) -> str:
        """Write digits, with commas between them."""

    @abstractmethod
    def verbatim(self, text: str) -> str:
        """Write a name as it is."""

    @abstractmethod
    def with_subscripts(self, base: str, subscripts: Sequence[str]) -> str:
        """Write something with subscripts."""

    def form(self, op: str, *operands: Phrase) -> Phrase:
        """Write an operation in its form."""
        if op == "where":
            return self.cases(*operands)
        if op == "multiply" and self.begins_with_digit(self.enclosed(operands[1], Level.SIGN)):
            op = "multiply by digits"
        return super().form(op, *operands)

    def cases(self, condition: Phrase, a: Phrase, b: Phrase) -> Phrase:
        """Write a choice; one that stands in its last row goes on with more rows."""
        row, last = self.case(self.text(a), self.text(condition)), self.case(self.text(b), None)
        if b.level == Level.CHOICE:
            last = b.size.removeprefix(self.opening).removesuffix(self.closing)
        rank = max(condition.rank, a.rank, b.rank)
        text = f"{self.opening}{row}{self.between_rows}{last}{self.closing}"
        return Phrase(text, Level.CHOICE, rank=rank)

    def names(self, names: Iterable[tuple[str, str]]) -> list[str]:
        """Turn the paths and components of values into symbols, all of which look different."""
        names = list(names)
        found = {name: self._name(*name) for name in names}
        times = Counter(found.values())
        return [
            found[path, component]
            if times[found[path, component]] == 1
            else self.verbatim(f"{path}[{component}]" if component else path)
            for path, component in names
        ]

    def _name(self, path: str, component: str) -> str:
        """Write one name with its subscripts."""
        owner, _, name = path.rpartition(".")
        letter = _LETTER.fullmatch(name)
        base = self.word(name) if letter is None else self._part(letter[1])
        subscripts = [] if letter is None else [part for part in letter.groups()[1:] if part]
        texts = [
            *map(self._part, subscripts),
            *([self.word(owner)] if owner else []),
            *([self._part(component)] if component else []),
        ]
        return self.with_subscripts(base, texts) if texts else base

    def _part(self, text: str) -> str:
        """Write letters and numbers as such, and all else upright."""
        if re.fullmatch(r"[\d, ]+", text):
            return self.indices(text.replace(" ", ""))
        return self.letter(text) if text in GREEK or len(text) == 1 else self.word(text)
