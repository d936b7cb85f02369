"""Run by the Python of an environment with marimo: every cell of the tutorial of an environment, and what came out.

python environment_tutorial_client.py TUTORIAL -- --rounds ROUNDS
"""

import runpy
import sys

app = runpy.run_path(sys.argv[1])["app"]
outputs, found = app.run()
shown = [output for output in outputs if output is not None]
assert len(shown) == 4, f"{len(shown)} cells show something"
assert not found["report"].faults
assert {problem.cell.stratum for problem in found["examples"]} == {"any", "close"}
assert len(found["valid"]) == len(found["unchanged"]) == len(found["decisions"]) == found["rounds"]
first, last = found["decisions"][0].before, found["decisions"][-1].design
assert last != first, "nothing was redesigned"
assert all(0 < percent <= 100 for percent in found["valid"])
print("four parts of a tutorial")
