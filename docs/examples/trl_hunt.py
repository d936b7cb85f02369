"""TRL's own GRPO trainer on hunts of several turns with a tool: python docs/examples/trl_hunt.py runs/hunt.

A tiny model with random weights, whose tokens are letters and whole guesses, trains for six steps; the engineer
redesigns at least twice. Killed and started again, it ends with the same versions.
"""

import json
import sys
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM, set_seed
from trl import GRPOConfig, GRPOTrainer
from trl.chat_template_utils import qwen3_chat_template

from lakewright.engineer.trial import TrialSettings
from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.trl import EngineerTasks, resume_training
from lakewright.experiments.trainers.versions import FolderSettings

folder = Path(sys.argv[1])
engineer = folder / "engineer"
if not (engineer / "design.json").exists():
    hunt = Path(__file__).with_name("hunt.py")
    few = FolderSettings(trial=TrialSettings(boards=8, samples=2, share=0))
    EngineerFolder.begin(engineer, environment=f"{hunt}:Hunt", held_out=16, settings=few)

letters = Tokenizer(models.WordLevel({letter: place for place, letter in enumerate("?0123456789")}, unk_token="?"))
letters.pre_tokenizer = pre_tokenizers.Split(Regex(r"."), "isolated")
end, pad = "<|im_end|>", "<|pad|>"
tokenizer = PreTrainedTokenizerFast(tokenizer_object=letters, eos_token=end, pad_token=pad, padding_side="left")
tokenizer.chat_template = qwen3_chat_template
for number in range(1, 9):
    call = json.dumps({"name": "guess", "arguments": {"number": number}})
    tokenizer.add_tokens(AddedToken(f"<tool_call>\n{call}\n</tool_call>", normalized=False))
small = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "head_dim": 16}
ids = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
set_seed(0)
model = Qwen3ForCausalLM(Qwen3Config(vocab_size=len(tokenizer), num_key_value_heads=1, **small, **ids))

tasks = EngineerTasks(engineer, every=2)
batch = {"per_device_train_batch_size": 16, "num_generations": 4, "max_completion_length": 128}
often = {"max_steps": 6, "save_steps": 1, "logging_steps": 1, "max_tool_calling_iterations": 6}
arguments = GRPOConfig(str(folder / "trl"), **batch, **often, learning_rate=1e-3, report_to="none", use_cpu=True)
trainer = GRPOTrainer(
    model,
    tasks.reward_funcs,
    arguments,
    tasks.train_dataset,
    processing_class=tokenizer,
    environment_factory=tasks.environment_factory,
    callbacks=tasks.callbacks,
)
tasks.attach(trainer)  # the engineer has the policy hunt, too: on held-out problems, and to try proposals
resume_training(trainer)
print("\n".join(tasks.folder.log()))
