"""``python -m pegasos``: the command line."""

import sys

from pegasos.cli import main

if __name__ == "__main__":
    sys.exit(main())
