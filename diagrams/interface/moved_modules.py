"""The error of an import whose module has moved: it says where a module of its name is now."""

from __future__ import annotations

import sys
from types import FrameType

from flexure.diagrams.checks.errors import quoted


class MovedModules:
    """The last finder of modules, which finds none: it raises the error of an import."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        """Raise if Python imports a module of Flexure; return None to who only looks for it."""
        frame: FrameType | None = sys._getframe(2)
        if not name.startswith("flexure.") or not _imports(frame):
            return
        from glob import escape, glob  # only errors need it

        wanted = name
        while frame is not None and "importlib" in frame.f_code.co_filename:
            wanted = frame.f_locals["name"] if _imports(frame) else wanted  # a module inside of it
            frame = frame.f_back
        root, last = sys.modules["flexure"].__path__[0], escape(wanted.rpartition(".")[2])
        files = [
            file.replace("\\", "/").removesuffix(".py").removesuffix("/__init__")
            for kind in (f"{last}.py", f"{last}/__init__.py")
            for file in glob(f"**/{kind}", root_dir=root, recursive=True)  # noqa: PTH207, has links
        ]
        here = [f"flexure.{file.replace('/', '.')}" for file in sorted(files)]
        place = f"here it is {quoted(here, 3)}" if here else "import public names from 'flexure'"
        raise ModuleNotFoundError(f"No module named '{wanted}': {place}", name=name)


def _imports(frame: FrameType | None) -> bool:
    """Return whether Python imports a module in a frame, rather than looks for it."""
    return frame is not None and frame.f_code.co_name == "_find_and_load_unlocked"
