"""TRL trains a tiny model on what an engineer designs: python docs/examples/trl_tutorial.py runs/largest [STEPS].

`lakewright engineer begin` began the engineer in that folder, as docs/trainers-tutorial.md says. The model is made
here, with random weights, and learns for half a minute. Killed and started again, training resumes.
"""

import sys
from pathlib import Path

from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM, set_seed
from trl import GRPOConfig, GRPOTrainer

from lakewright.experiments.trainers.trl import EngineerTasks, resume_training

folder = Path(sys.argv[1])
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 300

# A tokenizer of single letters, and a model of 19,000 weights.
letters = Tokenizer(models.WordLevel({letter: place for place, letter in enumerate("0123456789=.")}, unk_token="."))
letters.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
tokenizer = PreTrainedTokenizerFast(tokenizer_object=letters, eos_token=".", pad_token=".", padding_side="left")
small = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 16}
set_seed(0)
model = Qwen3ForCausalLM(Qwen3Config(vocab_size=12, num_key_value_heads=1, eos_token_id=11, pad_token_id=11, **small))

tasks = EngineerTasks(folder, every=steps // 6)
trainer = GRPOTrainer(
    model,
    tasks.reward_funcs,
    GRPOConfig(
        str(folder / "checkpoints"),
        max_steps=steps,
        per_device_train_batch_size=64,
        num_generations=8,
        max_completion_length=2,
        learning_rate=1e-2,
        save_steps=steps // 6,
        logging_steps=steps // 6,
        report_to="none",
        use_cpu=True,
    ),
    tasks.train_dataset,
    processing_class=tokenizer,
    callbacks=tasks.callbacks,
)
tasks.attach(trainer)  # proposals are tried on the model before it trains on one
resume_training(trainer)
print("\n".join(tasks.folder.log()))
