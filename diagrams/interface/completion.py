"""Tab completion in IPython: paths in texts, and attributes of blocks.

IPython asks objects for keys, as in ``servo["``, and knows what ``pid.`` has. It does not complete
after brackets, as in ``servo["pid"].``, and texts in calls, as in ``context.set("door.``, since it
cannot know that evaluating them has no side effects. A matcher of ours, which it gets when Flexure
is imported into a running IPython, fills them in; it looks at blocks, contexts and results alone.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

_MOST = 2000  # paths that are offered
_REACH = 1000  # characters before the cursor that are looked at
_NAME = r"[^\W\d]\w*"
_STEP = re.compile(rf"""\.({_NAME})|\[(["'])(.*?)\2\]""")
#: ``servo["pid"].k``: a name, steps from there, and the beginning of one.
_BEHIND = re.compile(rf"""({_NAME})((?:\.{_NAME}|\["[^"]*"\]|\['[^']*'\])*)\.({_NAME})?$""")
#: ``context.set("door.a``: what is before the text, and its beginning.
_TEXT = re.compile(r"""^(.*[(,{:=\[]\s*)["']([^"'\s]*)$""", re.DOTALL)


class Completing:
    """Base of what has paths that can be completed."""

    _opens = False  # whether brackets behind it only look something up, and compute nothing

    def _completion_paths_(self) -> Iterable[str]:
        """Go through the paths that its methods take."""
        raise NotImplementedError


class HasSignals(Completing):
    """Base of what has signals by their paths."""

    def _completion_paths_(self) -> list[str]:
        """Return the signals."""
        return [*getattr(self, "signals")]  # noqa: B009, a property of some and not of others

    _ipython_key_completions_ = _completion_paths_


def block_paths(system: Any) -> list[str]:
    """Return the paths of blocks below a system, the outer ones first."""
    return [*islice(_each_path(system), _MOST)]


def _each_path(system: Any) -> Iterator[str]:
    level = [(child.name, child) for child in system.children or ()]
    while level:
        yield from (path for path, _ in level)
        level = [
            (f"{path}.{child.name}", child)
            for path, block in level
            for child in block.children or ()
        ]


def offer_completion() -> None:
    """Add the matcher to the running IPython, if there is one, and it has matchers."""
    with suppress(Exception):  # of a kind that we do not know: then there are fewer names
        shell = sys.modules["IPython"].get_ipython()
        from IPython.core.completer import context_matcher

        matchers = shell.Completer.custom_matchers
        if not any(getattr(each, "is_for_flexure", False) for each in matchers):

            @context_matcher()  # type: ignore[untyped-decorator]
            def matcher(context: Any) -> dict[str, Any]:
                rows = context.full_text.split("\n")[: context.cursor_line]
                text = "\n".join([*rows, context.text_until_cursor])
                statement = re.split(r"\n(?=\S)", text)[-1]
                return _answer(*names_for(statement, shell.user_ns))

            matcher.is_for_flexure = True
            matchers.append(matcher)


def _answer(names: list[str], beginning: str, kind: str) -> dict[str, Any]:
    from IPython.core.completer import SimpleCompletion

    found = [SimpleCompletion(text=name, type=kind) for name in names]
    return {"completions": found, "matched_fragment": beginning, "suppress": bool(found)}


def names_for(code: str, namespace: Mapping[str, Any]) -> tuple[list[str], str, str]:
    """Return names that can stand at the end of code, what is there of them, and their kind."""
    code = code[-_REACH:]
    behind = _BEHIND.search(code)
    if behind is not None and "[" in behind[2]:
        beginning = behind[3] or ""
        target = _followed(namespace.get(behind[1]), behind[2])
        names = [] if target is None else dir(target)
        shown = [n for n in names if n.startswith(beginning) and (beginning or n[0] != "_")]
        return shown, beginning, "instance"
    text = _TEXT.match(code)
    if text is not None and not re.search(r"[\w\])]\s*\[\s*$", text[1]):  # those are keys
        known = [namespace.get(name) for name in re.findall(_NAME, text[1])]
        for each in reversed(known):
            if isinstance(each, Completing):
                paths = (path for path in each._completion_paths_() if path.startswith(text[2]))
                return [*islice(dict.fromkeys(paths), _MOST)], text[2], "path"
    return [], "", ""


def _followed(start: Any, steps: str) -> Any:
    """Follow attributes and brackets from a block or context; None where that leads nowhere."""
    for step in _STEP.finditer(steps):
        name, _, key = step.groups()
        if not (isinstance(start, Completing) and start._opens):
            return None
        try:
            start = vars(start)[name] if name else start[key]  # type: ignore[index]
        except Exception:
            return None
    return start
