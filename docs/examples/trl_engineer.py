"""TRL's GRPO trainer with an engineer: python docs/examples/trl_engineer.py runs/trl_engineer.

A tiny random model answers sums; every two steps the engineer redesigns them. Killed and started again, it resumes.
"""

import sys
from pathlib import Path

from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM, set_seed
from trl import GRPOConfig, GRPOTrainer

from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.trl import EngineerTasks, resume_training

folder = Path(sys.argv[1])
engineer = folder / "engineer"
# Or, before: lakewright engineer begin runs/trl_engineer/engineer --environment ...
if not (engineer / "design.json").exists():
    addition = Path(__file__).with_name("addition.py")
    EngineerFolder.begin(engineer, environment=f"{addition}:Addition", teacher="gain")

letters = Tokenizer(models.WordLevel({letter: place for place, letter in enumerate("0123456789+=.")}, unk_token="."))
letters.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
tokenizer = PreTrainedTokenizerFast(tokenizer_object=letters, eos_token=".", pad_token=".", padding_side="left")
small = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "head_dim": 16}
set_seed(0)
model = Qwen3ForCausalLM(Qwen3Config(vocab_size=13, num_key_value_heads=1, eos_token_id=12, pad_token_id=12, **small))

tasks = EngineerTasks(engineer, every=2)
batch = {"per_device_train_batch_size": 16, "num_generations": 4, "max_completion_length": 5}
often = {"max_steps": 6, "save_steps": 1, "save_total_limit": 3, "logging_steps": 1}
arguments = GRPOConfig(str(folder / "trl"), **batch, **often, learning_rate=1e-3, report_to="none", use_cpu=True)
trainer = GRPOTrainer(
    model,
    tasks.reward_funcs,
    arguments,
    tasks.train_dataset,
    processing_class=tokenizer,
    callbacks=tasks.callbacks,
)
resume_training(trainer)
print("\n".join(tasks.folder.log()))
