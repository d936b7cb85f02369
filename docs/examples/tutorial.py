"""A tutorial to run cell by cell: marimo edit docs/examples/tutorial.py, or python docs/examples/tutorial.py.

It draws boards, solves one, plays, trains a tiny policy for two minutes, and looks at how the boards were redesigned.
`python docs/examples/tutorial.py -- --minutes 0.1 --folder runs/tutorial` trains for less time, and keeps the run.
"""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="Lakewright in ten minutes")  # boards and tables are wide


@app.cell
def settings():
    import tempfile
    from pathlib import Path

    import marimo as mo

    given = mo.cli_args()
    minutes = float(given.get("minutes") or 2)
    folder = Path(str(given.get("folder") or tempfile.mkdtemp(prefix="lakewright-tutorial-"))) / "run"
    return folder, minutes, mo


@app.cell
def draw(mo):
    from lakewright.core_jax.config import EnvConfig
    from lakewright.core_jax.generator import generate
    from lakewright.core_jax.rows import rows_of
    from lakewright.experiments.viewer.pictures.board_pictures import strip_svg
    from lakewright.experiments.viewer.pictures.played_plans import make_example

    def film(row):
        return mo.Html(strip_svg(make_example(row, row.plan)))

    kind = EnvConfig.single(5, agents=2, hole_ratio=0.3, wait_ratio=0.5)
    boards = rows_of(generate(kind, seed=0, count=4), kind)
    waiting = next(row for row in boards if row.wait_required)
    mo.vstack([mo.md("# Boards\nOf these 5x5 boards half force somebody to wait, as this one."), film(waiting)])
    return boards, film, waiting


@app.cell
def solve(film, mo):
    from lakewright.core_jax.rows import Row, solve_rows

    drawn_by_hand = Row("by hand", 4, 2, ["....", ".HH.", ".HH.", "...."], [(0, 0), (3, 3)], [(3, 3), (0, 0)])
    (solved,) = solve_rows([drawn_by_hand])
    labels = f"makespan {solved.makespan}, sum of costs {solved.sum_of_costs}, certain by {solved.certificate}"
    mo.vstack([mo.md(f"# A board of your own\nIts labels: {labels}."), film(solved)])
    return (solved,)


@app.cell
def play(boards, mo, waiting):
    import gymnasium
    import numpy as np

    from lakewright.core_jax.terms import MOVES

    lake = "lakewright.experiments.boards.gym:lakewright/Lake-v0"  # from the room that registers it
    env = gymnasium.make(lake, size=5, agents=2, boards=len(boards), render_mode="ansi")
    env.reset(options={"board": boards.index(waiting)})
    begun = env.render()
    longest = max(map(len, waiting.plan))
    for step in range(longest):
        moves = [MOVES.index(plan.ljust(longest, "W")[step]) for plan in waiting.plan]
        _, reward, over, _, _ = env.step(np.array(moves))
        if over:
            break
    won = f"After {step + 1} joint moves all agents are at their goals: reward {reward:g}"
    mo.vstack([mo.md(f"# Play\n{won}."), mo.md(f"```text\n{begun}\n{env.render()}```")])
    return (reward,)


@app.cell
def train(folder, minutes, mo):
    from lakewright.experiments.jobs.runtime.library_setup import prepare_libraries
    from lakewright.experiments.loop import RunFolder, load_settings, run

    third = minutes / 3
    short = [f"warmup.minutes={third}", "stages=2", f"grpo.minutes={third}", "grpo.steps=100", "trial.enabled=false"]
    prepare_libraries()
    finished = RunFolder(folder)
    with finished.locked():
        run(load_settings("cpu", [*short, "teacher=rules"]), finished)
    mo.md(f"# Training\nA warm-up and two stages of GRPO, {minutes:g} minutes together, are in `{folder}`.")
    return (finished,)


@app.cell
def redesign(finished, mo):
    from lakewright.experiments.environments.lake import Lake
    from lakewright.experiments.loop import describe_stage
    from lakewright.experiments.viewer.run_table import tabulate_run

    story, table = "\n".join(describe_stage(finished, 0, Lake().space)), tabulate_run(finished)
    mo.md(f"# The redesign\nAfter the first stage:\n```text\n{story}\n```\nThe run:\n```text\n{table}\n```")
    return (story,)


if __name__ == "__main__":
    app.run()
