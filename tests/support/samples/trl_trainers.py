"""A GRPO trainer of TRL with a tiny model of bytes, on the problems of an engineer's folder."""

from pathlib import Path
from typing import Any

from transformers import Qwen3Config, Qwen3ForCausalLM, set_seed
from trl import GRPOConfig, GRPOTrainer

from lakewright.engineer.trial import TrialSettings
from lakewright.experiments.trainers.trl import EngineerTasks
from lakewright.experiments.trainers.versions import FolderSettings
from tests.support.models.byte_language_model import byte_tokenizer
from tests.support.processes.commands import HOUSE

LARGEST = f"{HOUSE / 'docs' / 'examples' / 'largest.py'}:Largest"
SMALL = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1, "head_dim": 16}
FEW_TRIED = FolderSettings(trial=TrialSettings(share=0, boards=4, samples=2), fewest_answers=1)
FEW = {
    "per_device_train_batch_size": 8,
    "num_generations": 4,
    "max_completion_length": 2,
    "max_steps": 4,
    "save_strategy": "no",
}


def make_trainer(tasks: EngineerTasks, out: Path, **changes: Any) -> GRPOTrainer:
    """A trainer of four steps, two groups of four answers each; if told to evaluate, on the held-out problems."""
    tokenizer = byte_tokenizer()
    ids = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id, "bos_token_id": None}
    set_seed(0)
    model = Qwen3ForCausalLM(
        Qwen3Config(vocab_size=len(tokenizer), num_key_value_heads=1, max_position_embeddings=8192, **SMALL, **ids)
    )
    arguments = GRPOConfig(str(out), **FEW | changes, report_to="none", use_cpu=True)
    return GRPOTrainer(
        model,
        tasks.reward_funcs,
        arguments,
        tasks.train_dataset,
        eval_dataset=tasks.eval_dataset if arguments.eval_strategy != "no" else None,
        processing_class=tokenizer,
        callbacks=tasks.callbacks,
    )
