"""What a policy could do at some times of its warm-up: copies of what it kept, each on the boards of a benchmark.

    python docs/examples/learning_curve.py benchmark/benchmark.jsonl runs/teams/warmup/checkpoint copies/*.safetensors

A warm-up keeps itself in `.scratch/training.safetensors` about once a minute; copy that file now and then while it goes
on. The checkpoint, of any time, gives the shape of the network. Prints a line for each copy: seconds and steps of
training, and how many percent of greedy plans are valid, the mean over sizes for each number of agents.
"""

import sys
from pathlib import Path

import numpy as np
from safetensors import safe_open

from lakewright.core_jax.rows import read_all
from lakewright.core_jax.types import Failure
from lakewright.experiments.jobs.runtime.library_setup import prepare_libraries
from lakewright.policy.board_play import BoardPlay
from lakewright.policy.codecs import TokensCodec
from lakewright.policy.evaluation import evaluate
from lakewright.policy.models import load_checkpoint
from lakewright.policy.tasks import BoardTask, task_of
from lakewright.policy.training import load_place

HORIZON = 64  # steps of the longest plan, as in `benchmark eval`
AVERAGED = "averaged."  # the weights that count


def main() -> None:
    """Evaluates each copy."""
    benchmark, checkpoint, *copies = sys.argv[1:]
    prepare_libraries()
    model, tokenizer = load_checkpoint(checkpoint)
    play = BoardPlay(TokensCodec(tokenizer), HORIZON)
    tasks = [task_of(row) for row in read_all(Path(benchmark))]
    for copy in copies:
        place = load_place(Path(copy))
        with safe_open(copy, "pt") as file:
            weights = {name: file.get_tensor(AVERAGED + name) for name, _ in model.named_parameters()}
        model.load_state_dict(weights, strict=False)
        verdicts, _ = evaluate(model, play, tasks)
        valid = np.asarray(verdicts.failure) == Failure.NONE
        print(f"{place.seconds:.0f} s", f"{place.step} steps", *_means(tasks, valid), sep="  ", flush=True)


def _means(tasks: list[BoardTask], valid: np.ndarray) -> list[str]:
    """Over sizes, for each number of agents."""
    agents, sizes = np.array([len(task.board.starts) for task in tasks]), np.array([task.size for task in tasks])
    return [
        f"{team} agents {np.mean([100 * valid[(agents == team) & (sizes == size)].mean() for size in found]):.1f}"
        for team in np.unique(agents)
        for found in [np.unique(sizes[agents == team])]
    ]


if __name__ == "__main__":
    main()
