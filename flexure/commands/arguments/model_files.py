"""Models: ordinary Python files with a function that returns a system."""

from __future__ import annotations

import inspect
import sys
import sysconfig
from argparse import Namespace
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from flexure.commands.arguments.call_texts import read_parameters
from flexure.diagrams.checks.errors import DeclarationError, UnknownNameError, is_inside, quoted

if TYPE_CHECKING:
    from flexure.diagrams.contexts.context import Context
    from flexure.diagrams.systems.system import System

_FUNCTION = "build"


@dataclass(frozen=True)
class Model:
    """The result of a model file."""

    word: str  # what it was called on the command line
    system: System  # the block or diagram
    # Where it begins: what the file returned besides or the defaults, with what was set.
    context: Context


def load_model(arguments: Namespace) -> Model:
    """Build the system of a model file, and set what is to be set in a context of it.

    Reads ``model``, ``context``, ``params`` and ``set``. Raises `FlexureError` where there is no
    such file or function, it makes no system, or a value is refused.
    """
    word = arguments.model
    file, name = _parts(word)
    attempt = f"Cannot load the model '{word}'"
    made = _made(_module(file, attempt), name, attempt)
    system, context = made if isinstance(made, tuple) and len(made) == 2 else (made, None)

    from flexure.diagrams.contexts.root_contexts import start_context
    from flexure.diagrams.systems.system import require_system

    require_system(system, attempt)
    start = start_context(system, context, attempt).clone()
    if arguments.context is not None:
        start = system.load_context(arguments.context)
    given = [each for file in arguments.params for each in read_parameters(file)]
    for path, value in [*given, *arguments.set]:
        start.set(path, value)
    return Model(word, system, start)


def _parts(word: str) -> tuple[Path, str]:
    """Return file and function of ``model.py:servo``."""
    file, _, name = word.rpartition(":")
    if file and name.isidentifier() and not Path(word).exists():
        return Path(file), name
    return Path(word), _FUNCTION


def _module(file: Path, attempt: str) -> ModuleType:
    """Run a file as a module that is not the main one, with its folder to import from."""
    if not file.is_file():
        folder = file if file.is_dir() else file.parent
        others = [str(each) for each in sorted(folder.glob("*.py"))]
        raise UnknownNameError(
            attempt,
            expected="a Python file",
            found="a folder" if file.is_dir() else "no file of this name",
            remedy=f"Python files in '{folder}': {quoted(others)}" if others else None,
        )
    full = file.resolve()
    name = _module_name(full)
    spec = spec_from_file_location(name, full, loader=SourceFileLoader(name, str(full)))
    module = module_from_spec(spec)  # type: ignore[arg-type]
    if str(full.parent) not in sys.path:
        sys.path.insert(0, str(full.parent))
    sys.modules[name] = module
    try:  # not by the loader, which would leave a folder __pycache__ behind
        exec(compile(full.read_bytes(), full, "exec", dont_inherit=True), module.__dict__)
    except SystemExit as error:
        raise DeclarationError(
            attempt,
            expected="a file that can be imported",
            found=f"one that ends the program, with the code {error.code!r}",
            remedy="Put the statements of a script under: if __name__ == '__main__'",
        ) from error
    return module


def _module_name(file: Path) -> str:
    """Return the name by which other processes can import the file, too, unless it is taken."""
    try:
        known = find_spec(file.stem) if file.stem.isidentifier() else None
    except ValueError:  # as of a module that somebody made by hand
        return f"model_{file.stem}"
    free = known is None or (known.origin is not None and Path(known.origin).resolve() == file)
    return file.stem if file.stem.isidentifier() and free else f"model_{file.stem}"


def _made(module: ModuleType, name: str, attempt: str) -> Any:
    """Return what a function of a model returns; a system may stand in its place."""
    function = getattr(module, name, None)
    if function is None:
        own = [
            each
            for each, value in vars(module).items()
            if inspect.isfunction(value)
            and value.__module__ == module.__name__
            and not each.startswith("_")
        ]
        file = Path(str(module.__file__)).name
        raise UnknownNameError(
            attempt,
            expected=f"a function {name}() in it that returns a system",
            found=f"the functions {quoted(own)}",
            remedy=f"Name another one after the file, as in {file}:{own[0]}" if own else None,
        )
    if not callable(function):
        return function
    try:
        inspect.signature(function).bind()
    except (TypeError, ValueError) as error:
        raise DeclarationError(
            attempt,
            expected=f"a function {name}() that can be called without arguments",
            found=f"{name}{_signature(function)}",
            remedy="Give its arguments defaults, or write a function that calls it with values",
        ) from error
    try:
        return function()
    except SystemExit as error:
        raise DeclarationError(
            attempt,
            expected=f"a function {name}() that returns a system",
            found=f"one that ends the program, with the code {error.code!r}",
            remedy="Return the system, and raise an error where there is none",
        ) from error


def _signature(function: Any) -> str:
    try:
        return str(inspect.signature(function))
    except (TypeError, ValueError):
        return "(...)"


def own_line(error: BaseException, model: str | None) -> str | None:
    """Return the innermost line of the user's files that an error, or its cause, went through."""
    if model is None:
        return None
    folder = _parts(model)[0].resolve().parent
    found = None
    seen: BaseException | None = error
    while seen is not None:
        trace = seen.__traceback__
        for frame in inspect.getinnerframes(trace) if trace is not None else ():
            if _is_own(frame.filename, folder):
                path = Path(frame.filename)
                code = (frame.code_context or [""])[0].strip()
                found = f"{path.name}:{frame.lineno}, in {frame.function}: {code}"
        seen = seen.__cause__ or seen.__context__
    return found


def _is_own(filename: str, folder: Path) -> bool:
    """Return whether a file belongs to a model, and not to what is installed somewhere below it."""
    path = Path(filename)
    return (
        path.is_absolute()
        and path.is_relative_to(folder)
        and not path.is_relative_to(sysconfig.get_path("stdlib"))
        and not {"site-packages", "dist-packages"} & set(path.parts)
        and not is_inside(filename)
    )
