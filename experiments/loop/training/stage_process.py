"""The training of one stage in one of several processes.

`accelerate launch -m lakewright.experiments.loop.training.stage_process RUN NUMBER FROM TOKENS`, started by the
loop where `launch` asks for processes: see `lakewright.experiments.loop.settings.launch`.
"""

import os
import sys
from pathlib import Path

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import end_with_starter
from lakewright.experiments.jobs.runtime.library_setup import importing, prepare_libraries
from lakewright.experiments.loop.settings.launch import BAD_INPUT, ERROR_PREFIX


def main() -> int:
    """Trains; the first process saves the results. Each reports bad input, on which the exit code is 2."""
    run, number, previous, tokens = sys.argv[1:]
    end_with_starter()
    prepare_libraries()
    with importing():
        import torch

        from lakewright.experiments.loop.records.run_folder import RunFolder
        from lakewright.experiments.loop.training.stage_training import train_here
        from lakewright.experiments.loop.training.trainee import make_trainee
        from lakewright.policy.inference import naming_full_memory
        from lakewright.policy.training import rank_and_processes

    folder = RunFolder(Path(run))
    rank, processes = rank_and_processes()
    if not rank:
        print(f"stage {number}: {processes} processes", flush=True)
    try:
        if torch.cuda.is_available():
            with naming_full_memory(f"stage {number} in process {rank}"):
                torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        train_here(
            make_trainee(folder.settings()), folder.stage(int(number)), Path(previous), int(number), float(tokens)
        )
    except InputError as error:
        print(f"{ERROR_PREFIX}{error}", file=sys.stderr, flush=True)
        return BAD_INPUT
    return 0


if __name__ == "__main__":
    sys.exit(main())
