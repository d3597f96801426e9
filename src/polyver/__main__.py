"""`python -m polyver`: the command, where its script is not on the PATH."""

import sys

from polyver.app import main

if __name__ == "__main__":
    sys.exit(main())
