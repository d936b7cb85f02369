"""`python -m lakewright.experiments.cli` is the command `lakewright`."""

import sys

from lakewright.experiments.cli.app import main

sys.exit(main())
