"""`python -m experiments.cli` is the command `lakewright`."""

import sys

from experiments.cli.app import main

sys.exit(main())
