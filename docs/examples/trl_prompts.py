"""TRL's own GRPO trainer on whole plans: python docs/examples/trl_prompts.py Qwen/Qwen3-0.6B runs/trl."""

import sys

from trl import GRPOConfig, GRPOTrainer

from lakewright.experiments.boards.episodes.trl_tasks import LakePrompts

model, folder = sys.argv[1:]
lake = LakePrompts(size=4, agents=2, boards=64)
few = {"max_steps": 2, "per_device_train_batch_size": 4, "num_generations": 4, "max_completion_length": 64}
arguments = GRPOConfig(folder, **few, bf16=False, report_to="none")
GRPOTrainer(model, lake.reward_funcs, arguments, lake.train_dataset).train()
