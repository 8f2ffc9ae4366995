"""The command line: ``python -m flexure``."""

from __future__ import annotations

import sys

from flexure.commands.main import main

if __name__ == "__main__":
    sys.exit(main())
