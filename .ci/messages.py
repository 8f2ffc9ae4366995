"""Print every message of exceptions and warnings, to read them once in a list.

    python .ci/messages.py [file or folder ...]

Each message has its file and line, then the texts it is composed of, one a line, with their keyword
(``expected``, ``found``, ``remedy``). Expressions in braces are computed when it is raised.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator
from pathlib import Path

from words import PLACES, RAISED, ROOT, files_in, last_name


def text_of(node: ast.expr) -> str:
    """Return a text as its source gives it, with expressions in braces."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(text_of(part) for part in parts)
        case ast.FormattedValue(value=value):
            return f"{{{ast.unparse(value)}}}"
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return text_of(left) + text_of(right)
        case ast.IfExp(test=test, body=body, orelse=other):
            return f"[{text_of(body)} | if not {ast.unparse(test)}: {text_of(other)}]"
    return f"{{{ast.unparse(node)}}}"


def messages(file: Path) -> Iterator[tuple[int, str, list[str]]]:
    """Go through the messages of a file: line, class of the exception or warning, texts."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and last_name(node.func).endswith(RAISED):
            texts = [text_of(part) for part in node.args]
            texts += [f"{part.arg}: {text_of(part.value)}" for part in node.keywords]
            yield node.lineno, last_name(node.func), texts


def main() -> None:
    """Print the messages of the places named, or of the package."""
    parser = argparse.ArgumentParser(description="Print the messages of exceptions and warnings.")
    parser.add_argument("places", nargs="*", type=Path, default=[ROOT / name for name in PLACES])
    for file in files_in([place.absolute() for place in parser.parse_args().places]):
        if file.suffix == ".py":
            for line, name, texts in sorted(messages(file)):
                print(f"{file.relative_to(ROOT)}:{line}: {name}", *texts, sep="\n  ")


if __name__ == "__main__":
    main()
