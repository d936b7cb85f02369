"""Run by the Python of an environment with marimo: every cell of the tutorial, and what came out of them.

python tutorial_client.py TUTORIAL -- --minutes MINUTES --folder FOLDER
"""

import runpy
import sys

app = runpy.run_path(sys.argv[1])["app"]
outputs, found = app.run()
shown = [output for output in outputs if output is not None]
assert len(shown) == 5, f"{len(shown)} cells show something"
assert found["reward"] == 1.0, "the certified plan does not bring everybody home"
assert (found["solved"].status, found["solved"].sum_of_costs) == ("solvable", 12), found["solved"]
assert found["waiting"].wait_required
assert "valid" in found["story"], found["story"]
assert "changed" in found["story"], found["story"]
assert len(found["finished"].finished_stages()) == 2
print("five parts of a tutorial")
