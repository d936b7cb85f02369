"""The internals of TRL and transformers that the policy overrides or reads, and where to look when they move.

Neither library promises them, so pyproject.toml pins both to a minor version. To move to a newer one: raise the pin and
MINORS, run this file, and compare the library's new code with the named file of ours for each internal that it reports.
"""

import importlib.metadata
import inspect
import tomllib
from importlib import resources

import pytest
import torch
from torch.optim.lr_scheduler import LRScheduler
from transformers import DynamicCache, Trainer
from trl import GRPOConfig, GRPOTrainer
from trl.generation.vllm_generation import VLLMGeneration

from lakewright.policy.codecs import build_tokenizer
from lakewright.policy.training.grpo_loss import PlanTrainer
from tests.support.models.tiny_policy import tiny_model
from tests.support.processes.commands import HOUSE

MINORS = {"transformers": "5.23", "trl": "1.16"}
TRAINER, DECODER = "policy/training/grpo_loss.py", "policy/inference/decoders.py"
ROLLOUTS, HARDWARE = "policy/training/rollouts.py", "policy/training/hardware.py"

# A function of a library, the first of its parameters as our code passes or takes them, and our code.
CALLED = {
    "transformers Trainer.create_optimizer": (
        Trainer.create_optimizer,
        ("self", "model"),
        f"PlanTrainer.create_optimizer in {TRAINER} overrides it to choose Muon",
    ),
    "transformers Trainer.create_scheduler": (
        Trainer.create_scheduler,
        ("self", "num_training_steps", "optimizer"),
        f"PlanTrainer.create_scheduler in {TRAINER} overrides it to let rates fall with the clock",
    ),
    "trl GRPOTrainer.training_step": (
        GRPOTrainer.training_step,
        ("self", "model", "inputs", "num_items_in_batch"),
        f"PlanTrainer overrides it in {TRAINER} to state torch's dtype and gradients",
    ),
    "trl GRPOTrainer._prepare_inputs": (
        GRPOTrainer._prepare_inputs,
        ("self", "generation_batch"),
        f"PlanTrainer overrides it in {TRAINER}: it judges, after which torch's state is restored",
    ),
    "trl GRPOTrainer._get_per_token_logps_and_entropies": (
        GRPOTrainer._get_per_token_logps_and_entropies,
        ("self", "model", "input_ids", "attention_mask", "logits_to_keep", "batch_size", "compute_entropy"),
        f"PlanTrainer overrides it in {TRAINER} to read each prompt once; it returns log-probs, entropies and a loss",
    ),
    "trl GRPOTrainer._log_metric": (
        GRPOTrainer._log_metric,
        ("self", "name", "value"),
        f"Rollouts.reward in {ROLLOUTS} is given it as log_metric",
    ),
    "trl VLLMGeneration.generate": (
        VLLMGeneration.generate,
        ("self", "prompts", "images", "num_generations"),
        f"sampled_by_vllm in {HARDWARE} calls it and takes four values back",
    ),
}

# Words in the code of a library's function that our code relies on, and our code.
RELIED_ON = {
    "losses are reported per step since the last report": (
        Trainer._maybe_log_save_evaluate,
        "self._globalstep_last_logged = self.state.global_step",
        f"PlanTrainer.continue_at in {TRAINER} sets it where a stage goes on",
    ),
    "the tokens of the log are those of the state": (
        GRPOTrainer._generate,
        "self.state.num_input_tokens_seen += ",
        f"PlanTrainer.continue_at in {TRAINER} sets it where a stage goes on",
    ),
    "the rate of the log is the last one of the scheduler": (
        LRScheduler.get_last_lr,
        "self._last_lr",
        f"PlanTrainer.continue_at in {TRAINER} sets it where a stage goes on",
    ),
    "rollout_func gets slots and the trainer": (
        GRPOTrainer._generate,
        "self.rollout_func(prompts, self)",
        f"Rollouts.__call__ in {ROLLOUTS}",
    ),
    "log-probabilities of three values": (
        GRPOTrainer._generate_and_score_completions,
        "old_per_token_logps, _, _ = self._get_per_token_logps_and_entropies(",
        f"PlanTrainer._get_per_token_logps_and_entropies in {TRAINER}",
    ),
    "the temperature of a trainer": (
        GRPOTrainer.__init__,
        "self.temperature = ",
        f"PlanTrainer._get_per_token_logps_and_entropies in {TRAINER}",
    ),
    "rewards get the extra fields of rollouts": (
        GRPOTrainer._generate_and_score_completions,
        "extra_fields",
        f"plan_reward of Rollouts in {ROLLOUTS}",
    ),
}

# What the decoder reads of each of a Qwen3 model's layers.
OF_A_LAYER = (
    *("input_layernorm.variance_epsilon", "post_attention_layernorm.variance_epsilon", "self_attn.q_proj.weight"),
    *("self_attn.k_proj.weight", "self_attn.v_proj.weight", "self_attn.o_proj.weight", "self_attn.q_norm.weight"),
    *("self_attn.k_norm.weight", "self_attn.head_dim", "self_attn.scaling", "self_attn.num_key_value_groups"),
    *("mlp.gate_proj.weight", "mlp.up_proj.weight", "mlp.down_proj.weight", "mlp.act_fn"),
)


@pytest.mark.parametrize("library", MINORS)
def test_a_library_is_of_the_minor_whose_internals_were_read(library):
    installed = importlib.metadata.version(library)
    pins = tomllib.loads((HOUSE / "pyproject.toml").read_text())["project"]["optional-dependencies"]["lake"]
    pin = next(pin for pin in pins if pin.startswith(f"{library}>="))
    major, minor = MINORS[library].split(".")
    assert pin == f"{library}>={MINORS[library]},<{major}.{int(minor) + 1}", f"{library}: {pin} is not the minor read"
    assert installed.startswith(f"{MINORS[library]}."), (
        f"{library} {installed} is installed; its internals were read as of {MINORS[library]}: see {__doc__}"
    )


@pytest.mark.parametrize("name", CALLED)
def test_an_internal_takes_what_our_code_passes(name):
    function, parameters, ours = CALLED[name]
    taken = tuple(inspect.signature(function).parameters)[: len(parameters)]
    assert taken == parameters, f"{name} takes {taken} now, not {parameters}; look at: {ours}"


@pytest.mark.parametrize("name", RELIED_ON)
def test_an_internal_does_what_our_code_relies_on(name):
    function, words, ours = RELIED_ON[name]
    assert words in inspect.getsource(function), (
        f"{function.__qualname__} has {words!r} no more ({name}); look at: {ours}"
    )


def test_nothing_else_of_the_trainer_is_overridden():
    own = {name for name in vars(PlanTrainer) if callable(getattr(GRPOTrainer, name, None)) and name != "__init__"}
    named = {name.rpartition(".")[2] for name in CALLED}
    assert own <= named, f"{sorted(own - named)} are overridden in {TRAINER} without a line in CALLED"


def test_the_decoder_finds_what_it_reads_of_a_qwen3_model():
    model = tiny_model()
    for layer in model.model.layers:
        for path in OF_A_LAYER:
            found = layer
            for name in path.split("."):
                assert hasattr(found, name), f"a layer of Qwen3 has no {path} any more; look at: {DECODER}"
                found = getattr(found, name)
    cos, sin = model.model.rotary_emb(torch.zeros(1, 2, model.config.hidden_size), torch.arange(2)[None])
    assert cos.shape == sin.shape == (1, 2, layer.self_attn.head_dim), f"rotary_emb changed; look at: {DECODER}"


def test_a_cache_holds_keys_and_values_layer_by_layer():
    model, tokenizer = tiny_model(), build_tokenizer()
    cache = DynamicCache(config=model.config)
    model(input_ids=torch.tensor([[tokenizer.bos_token_id] * 3]), past_key_values=cache, use_cache=True)
    ours = f"TransformerDecoder.read in {DECODER} and _of in {TRAINER}"
    assert len(cache.layers) == len(model.model.layers), f"DynamicCache.layers changed; look at: {ours}"
    for layer in cache.layers:
        assert layer.keys.shape[-2] == layer.values.shape[-2] == 3, (
            f"the layers of DynamicCache changed; look at: {ours}"
        )


def test_the_arguments_that_are_passed_to_trl_are_known_to_it():
    passed = {
        *("num_generations", "max_completion_length", "loss_type", "scale_rewards", "epsilon", "epsilon_high", "beta"),
        *("generation_batch_size", "use_vllm", "vllm_mode", "vllm_max_model_length", "vllm_gpu_memory_utilization"),
        *("vllm_enable_sleep_mode", "vllm_server_base_url", "activation_checkpointing"),
    }
    unknown = passed - set(inspect.signature(GRPOConfig).parameters)
    assert not unknown, f"GRPOConfig knows {sorted(unknown)} no more; look at: policy/training/grpo.py and {HARDWARE}"


def test_trl_ships_the_configs_that_launches_name():
    from typing import get_args, get_type_hints

    from lakewright.experiments.loop.settings.launch import LaunchSettings

    shipped = {file.name for file in (resources.files("trl") / "accelerate_configs").iterdir()}
    named = {f"{name}.yaml" for name in get_args(get_type_hints(LaunchSettings)["config"])} - {"none.yaml"}
    assert named <= shipped, f"trl ships no {sorted(named - shipped)}; look at: experiments/loop/settings/launch.py"
