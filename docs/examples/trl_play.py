"""TRL's own GRPO trainer on play with a tool: python docs/examples/trl_play.py Qwen/Qwen3-0.6B runs/trl."""

import sys

from trl import GRPOConfig, GRPOTrainer

from lakewright.experiments.boards.episodes.trl_tasks import LakePlay

model, folder = sys.argv[1:]
lake = LakePlay(size=4, agents=2, boards=64)
few = {"max_steps": 2, "per_device_train_batch_size": 4, "num_generations": 4, "max_completion_length": 256}
arguments = GRPOConfig(folder, **few, bf16=False, report_to="none")
trainer = GRPOTrainer(
    model, args=arguments, train_dataset=lake.train_dataset, environment_factory=lake.environment_factory
)
trainer.train()
