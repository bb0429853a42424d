"""`python -m gpuwatch`: the command, by the name of the Python that has it."""

import sys

from .tui.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
