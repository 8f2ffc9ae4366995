"""Find wording that readers stumble over, in pages, docstrings and messages.

    python .ci/words.py [file or folder ...]

Each rule is a pattern, its reason, and what to write instead. Pages are read without code, Python
files as their docstrings and the texts of exceptions and warnings. Exits with 1 if a rule is
broken. The changelog is not read, since it quotes.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: What is read if nothing is named.
PLACES = ("README.md", "CONTRIBUTING.md", "docs", "flexure", "diagrams", "blocks", "solvers")


@dataclass(frozen=True)
class Rule:
    """A pattern that text must not contain.

    Attributes
    ----------
    name : str
        How the rule is called in reports.
    pattern : str
        A regular expression; white space matches line breaks.
    reason : str
        Why the wording is bad, and what to write.
    """

    name: str
    pattern: str
    reason: str


_START = r"(?:^|^[-*] |[.:;!?] )"
RULES = (
    Rule("of-opening", _START + r"Of (?!course)[a-z]", "inverted: put the subject first"),
    Rule(
        "relative-subject",
        _START + r"(?:What|Who|Whatever|Whoever) (?!is |are |if |do |does |can |it )[a-z]+ ",
        "a relative clause as the subject: name the thing (a value, a user, a subclass)",
    ),
    Rule("pronoun-opening", _START + r"(?:That|Those) of ", "a pronoun as subject: name the thing"),
    Rule("let-go", r"\b(?:[Ll]ets?|[Ll]etting) go\b", "write: release, delete, run"),
    Rule("by-and-by", r"\b[Bb]y and by\b", "write: gradually, in steps"),
    Rule("does-as-well", r"\b(?:does|do) as well\b(?= as|[.,;])", "write: you can also use"),
    Rule("to-be-had", r"\bto be had\b", "write: available"),
    Rule("a-word", r"\ba word (?:about|on|in time)\b", "write: a note, or nothing"),
    Rule("stands-for", r"\b(?<!body )stands? for ", "write: represents, replaces, is"),
    Rule(
        "tells",
        r"\b(?:page|report|message|line|method|error|table) tells\b",
        "write: states, reports, shows",
    ),
    Rule("whoever", r"\b[Ww]hoever\b", "write: the user, a subclass, a caller"),
    Rule(
        "nobody",
        r"\b(?:[Nn]obody|[Ss]omebody|[Ee]verybody)\b",
        "write: you, a user, no block, or the passive",
    ),
    Rule("in-the-place", r"\bin the place of\b", "write: instead of"),
    Rule("looked-at", r"\b(?:is|are|was|were|be|been) looked at\b", "write: checked, drawn, read"),
)
_CODE = re.compile(r"^(`{3,}|~{3,}).*?^\1`*$", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"`[^`\n]*`")
RAISED = ("Error", "Warning", "warn", "note", "require", "require_that", "require_known")


def texts_of(file: Path) -> Iterator[tuple[int, str]]:
    """Go through the texts of a file that people read, with the lines where they begin."""
    source = file.read_text(encoding="utf-8")
    if file.suffix == ".md":
        yield 1, _CODE.sub(lambda match: "\n" * match[0].count("\n"), source)
        return
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body:
            first = node.body[0]
            match first:
                case ast.Expr(value=ast.Constant(value=str(text), lineno=line)):
                    yield line, text
        if isinstance(node, ast.Call) and last_name(node.func).endswith(RAISED):
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.lineno, part.value


def last_name(function: ast.expr) -> str:
    """Return the last name of what is called."""
    return getattr(function, "attr", "") or getattr(function, "id", "")


def paragraphs(file: Path) -> Iterator[tuple[list[int], str]]:
    """Go through the paragraphs of a file in one line each, with the line of each word."""
    for line, text in texts_of(file):
        words: list[str] = []
        lines: list[int] = []
        for number, row in enumerate([*text.splitlines(), ""], line):
            new = not row.strip() or row.lstrip().startswith(("- ", "* ", "|", "#", ": "))
            if new and words:
                yield lines, " ".join(words)
                words, lines = [], []
            words += row.split()
            lines += [number] * len(row.split())


def violations(file: Path) -> Iterator[tuple[str, str]]:
    """Go through the places of a file that break a rule: its name, and the words with the line."""
    for lines, text in paragraphs(file):
        prose = _INLINE.sub(lambda match: "`" + "x" * (len(match[0]) - 2) + "`", text)
        for rule in RULES:
            for match in re.finditer(rule.pattern, prose):
                line = lines[min(text.count(" ", 0, match.end() - 1), len(lines) - 1)]
                words = text[max(0, match.start() - 30) : match.end() + 40]
                yield rule.name, f"{_short(file)}:{line}: {words}"


def _short(file: Path) -> Path:
    """Return the path of a file below the project, where it is in it."""
    return file.relative_to(ROOT) if file.is_relative_to(ROOT) else Path(file.name)


def files_in(places: list[Path]) -> Iterator[Path]:
    """Go through the pages and Python files below some places."""
    for place in places:
        found = [place] if place.is_file() else sorted(place.rglob("*"))
        for file in found:
            parts = _short(file).parts
            if any(part[0] == "_" and part != "__init__.py" for part in parts[:-1]):
                continue
            if file.suffix in (".md", ".py") and file.is_file() and file.stem != "changelog":
                yield file


def main() -> int:
    """Report how often each rule is broken, and where."""
    parser = argparse.ArgumentParser(description="Find wording that readers stumble over.")
    parser.add_argument("places", nargs="*", type=Path, default=[ROOT / name for name in PLACES])
    found: dict[str, list[str]] = {rule.name: [] for rule in RULES}
    places = [place.absolute() for place in parser.parse_args().places]
    for file in dict.fromkeys(files_in(places)):
        for name, place in violations(file):
            found[name].append(place)
    for rule in RULES:
        print(f"{rule.name}: {len(found[rule.name])}")
        if found[rule.name]:
            print("\n".join([f"  {rule.reason}", *(f"  {place}" for place in found[rule.name])]))
    return int(any(found.values()))


if __name__ == "__main__":
    sys.exit(main())
