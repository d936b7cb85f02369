"""Sampling: our decoder gives the same tokens as the library's generation, and samples the model's distribution."""

from copy import deepcopy

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel, Qwen3Config, Qwen3ForCausalLM

from lakewright.policy.codecs.tokens import ID, encode_prompt_tokens
from lakewright.policy.inference import decoders, sample, sampling
from lakewright.policy.inference.sampling import _count_answer_tokens, end_tokens, generate_answers
from tests.support.models.tiny_policy import tasks, tiny_model, tokenizer

END = ID["<eos>"]
LENGTH = 10
PROMPTS = [encode_prompt_tokens(task.board) for task in tasks()[:30]]


SMALL = {
    "vocab_size": len(tokenizer()),
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
}


def decided(model: PreTrainedModel) -> PreTrainedModel:
    """A model whose answers differ between boards and end now and then."""
    model = deepcopy(model)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim == 2:
                weight.mul_(20 if "embed" not in name else 50)
        model.lm_head.weight[END].mul_(4)
    return model.eval()


def grouped_query_model() -> PreTrainedModel:
    """Four heads that share two keys and values; two layers."""
    torch.manual_seed(3)
    return Qwen3ForCausalLM(Qwen3Config(**SMALL))


def llama() -> PreTrainedModel:
    """A Llama of the same shape, whose generation may end with another token too, as those of chat models may."""
    torch.manual_seed(3)
    model = LlamaForCausalLM(LlamaConfig(**SMALL))
    model.generation_config.eos_token_id = [END, ID["<plan>"]]
    return model


def log_probs_of(model: PreTrainedModel, prompt: list[int], answer: list[int], temperature: float) -> torch.Tensor:
    """What the model itself says of an answer, read in one piece."""
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1]
    return (logits / temperature).log_softmax(-1).gather(-1, torch.tensor(answer)[:, None]).squeeze(-1)


MODELS = {"one key a head": tiny_model, "grouped queries": grouped_query_model, "llama": llama}


@pytest.mark.parametrize("kind", MODELS)
def test_greedy_answers_are_those_of_the_library(kind):
    model = decided(MODELS[kind]())
    tokens, _ = generate_answers(model, tokenizer(), PROMPTS, 1, LENGTH, 0.0)
    ends = end_tokens(model, tokenizer())
    expected = [
        row[:end] for row, end in zip(tokens.tolist(), _count_answer_tokens(tokens, ends).tolist(), strict=True)
    ]
    assert len({len(answer) for answer in expected}) > 2, "answers of several lengths, so that some boards are dropped"
    for batch in (7, 512):
        found = sample(model, tokenizer(), PROMPTS, max_new_tokens=LENGTH, temperature=0.0, batch=batch)
        assert found.answers == expected, f"batch of {batch}"


def test_answers_are_the_same_however_little_room_there_is_for_them_at_first(monkeypatch):
    model = decided(grouped_query_model())
    expected = sample(model, tokenizer(), PROMPTS, copies=2, max_new_tokens=LENGTH, temperature=0.0)
    monkeypatch.setattr(decoders, "FIRST", 3)
    found = sample(model, tokenizer(), PROMPTS, copies=2, max_new_tokens=LENGTH, temperature=0.0)
    assert found == expected
    assert max(map(len, found.answers)) > 2 * 3, "the room is doubled twice"


@pytest.mark.parametrize("kind", MODELS)
def test_sampled_log_probabilities_are_those_of_the_model(kind):
    model = decided(MODELS[kind]())
    torch.manual_seed(0)
    found = sample(model, tokenizer(), PROMPTS, copies=3, max_new_tokens=LENGTH, temperature=3.0, batch=24)
    assert len({str(answer) for answer in found.answers}) > len(PROMPTS)
    assert len({len(answer) for answer in found.answers}) > 3
    for row, (answer, scores) in enumerate(zip(found.answers, found.log_probs, strict=True)):
        expected = log_probs_of(model, PROMPTS[row // 3], answer, 3.0)
        assert torch.allclose(torch.tensor(scores), expected, atol=1e-4), f"row {row}: {answer}"
        assert END not in answer[:-1]


def test_tokens_are_sampled_as_often_as_the_model_says():
    model, copies = decided(tiny_model()), 4000
    torch.manual_seed(1)
    found = sample(model, tokenizer(), PROMPTS[:1], copies=copies, max_new_tokens=1, temperature=1.0, batch=copies)
    with torch.inference_mode():
        chances = model(input_ids=torch.tensor(PROMPTS[:1])).logits[0, -1].softmax(-1)
    counts = torch.bincount(torch.tensor(found.answers).flatten(), minlength=len(chances))
    error = (copies * chances * (1 - chances)).sqrt()
    assert ((counts - copies * chances).abs() < 5 * error + 3).all()


def test_sampling_leaves_the_model_in_its_mode():
    model = tiny_model().train()
    sample(model, tokenizer(), PROMPTS[:2], max_new_tokens=2, temperature=1.0)
    assert model.training


def test_a_model_of_another_kind_answers_through_the_library(monkeypatch):
    model = decided(tiny_model())
    expected = sample(model, tokenizer(), PROMPTS, max_new_tokens=LENGTH, temperature=0.0)
    monkeypatch.setattr(sampling, "find_decoder", lambda model: None)
    found = sample(model, tokenizer(), PROMPTS, max_new_tokens=LENGTH, temperature=0.0)
    assert found.answers == expected.answers
    for scores, other in zip(found.log_probs, expected.log_probs, strict=True):
        assert torch.allclose(torch.tensor(scores), torch.tensor(other), atol=1e-4)


def adapted(model: PreTrainedModel, **how) -> PeftModel:
    """A model with an adapter on every linear layer, which changes its answers."""
    torch.manual_seed(4)
    lora = LoraConfig(r=3, lora_alpha=12, target_modules="all-linear", task_type="CAUSAL_LM", **how)
    return get_peft_model(deepcopy(model), lora).eval()


@pytest.mark.parametrize("kind", ["grouped queries", "llama"])
def test_an_adapter_is_decoded_here_with_the_answers_of_the_library(kind):
    base = decided(MODELS[kind]())
    model = adapted(base, init_lora_weights=False)
    how = {"max_new_tokens": LENGTH, "temperature": 0.0}
    assert sampling.find_decoder(model)
    found = sample(model, tokenizer(), PROMPTS[:12], copies=2, **how)
    assert found.answers[::2] != sample(base, tokenizer(), PROMPTS[:12], **how).answers
    tokens, scores = generate_answers(model, tokenizer(), PROMPTS[:12], 2, LENGTH, 0.0)
    lengths = _count_answer_tokens(tokens, end_tokens(model, tokenizer())).tolist()
    assert found.answers == [row[:length] for row, length in zip(tokens.tolist(), lengths, strict=True)]
    for mine, theirs in zip(found.log_probs, scores, strict=True):
        assert torch.allclose(torch.tensor(mine), theirs[: len(mine)], atol=1e-3)


@pytest.mark.parametrize("how", [{"use_dora": True}, {"lora_bias": True}, {"modules_to_save": ["lm_head"]}])
def test_an_adapter_that_does_more_than_a_product_of_low_rank_answers_through_the_library(how):
    assert sampling.find_decoder(adapted(grouped_query_model(), **how)) is None


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("by", ["our decoder", "the library"])
def test_a_mask_decides_what_may_follow(kind, by, monkeypatch):
    """Words of its own for each copy, in turn, until the third."""
    if by == "the library":
        monkeypatch.setattr(sampling, "find_decoder", lambda model: None)
    words = [ID["0,0"], ID["1,0"], ID["1,1"]]
    seen = []

    def mask(answers, logits):
        seen.append(answers.tolist())
        allowed = torch.full_like(logits, -torch.inf)
        for copy in range(3):
            allowed[copy, END if answers.shape[1] == 3 else words[(copy + answers.shape[1]) % 3]] = 0
        return logits + allowed

    model = decided(MODELS[kind]())
    how = {"max_new_tokens": LENGTH, "temperature": 1.0, "mask": mask, "scored": False}
    found = sample(model, tokenizer(), PROMPTS[:1], copies=3, **how)
    assert found.answers == [[*words, END], [*words[1:], words[0], END], [words[2], *words[:2], END]]
    assert seen[:3] == [[[], [], []], [[word] for word in words], [words[:2], words[1:], [words[2], words[0]]]]


@pytest.mark.parametrize("kind", MODELS)
def test_weights_in_bfloat16_are_decoded_also_where_the_trainer_widens_the_logits(kind):
    model = decided(MODELS[kind]()).to(torch.bfloat16)
    model.register_forward_hook(lambda *given: given[-1].__setitem__("logits", given[-1].logits.float()))
    found = sample(model, tokenizer(), PROMPTS[:6], copies=2, max_new_tokens=4, temperature=1.0)
    assert all(len(answer) == len(scores) > 0 for answer, scores in zip(found.answers, found.log_probs, strict=True))
