"""The command line: ``python -m flexure``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from flexure import __doc__ as summary
from flexure import __version__


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after ``python -m flexure``; those of this process by default.

    Raises
    ------
    SystemExit
        After ``--version`` and ``--help``, with status 0; after words that are not understood,
        with status 2.
    """
    parser = argparse.ArgumentParser(prog="python -m flexure", description=summary)
    parser.add_argument("--version", action="version", version=f"flexure {__version__}")
    parser.parse_args(arguments)
    parser.print_help()


if __name__ == "__main__":
    main()
