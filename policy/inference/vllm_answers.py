"""The answers of a checkpoint by vLLM, which batches continuously: for long answers of a large model on a GPU.

    with start_vllm(folder, model, tokenizer, longest=8192) as writer:
        writer.sample(prompts, copies=8, max_new_tokens=4096, temperature=1.0)

vLLM computes in a process of its own, which ends with the block. It is called as version 0.30 wants it.
"""

import functools
import importlib.util
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import torch
from tqdm import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from lakewright.core_jax.errors import InputError
from lakewright.policy.inference.device_limits import count_free_bytes
from lakewright.policy.inference.sampling import Samples, end_tokens
from lakewright.policy.models.building import computes_in_bfloat16
from lakewright.policy.models.devices import explain_no_gpu, find_driver, resolve_device
from lakewright.policy.models.loading import prepare_place

SHARE = 0.9  # of the free memory of a GPU that vLLM takes, for its keys and values too
MOST_WEIGHED = 128  # tokens whose log-probabilities vLLM gives at one place
SEEDS = 1 << 31
LONGEST_PROBLEM = 300  # characters of an error of vLLM that are shown
REMEDY = "set text.decoder=own (--decoder own), or free memory of the GPU"


class VllmAnswers:
    """The answers of an engine of vLLM: an `AnswerWriter`.

    Args:
        engine: an `LLM` of vLLM.
        tokenizer: the checkpoint's.
        ends: the tokens that end an answer.
    """

    def __init__(self, engine: Any, tokenizer: PreTrainedTokenizerFast, ends: Sequence[int]) -> None:
        self._engine, self.tokenizer, self.ends = engine, tokenizer, list(ends)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._engine.llm_engine.engine_core.shutdown()

    def sample(
        self,
        prompts: list[list[int]],
        *,
        copies: int = 1,
        max_new_tokens: int,
        temperature: float,
        scored: bool = True,
        schema: dict[str, Any] | None = None,
        on_progress: Callable[[int], None] = lambda prompts: None,
    ) -> Samples:
        """See `AnswerSampler`."""
        each = copies if temperature else 1  # vLLM refuses several greedy answers, which are equal
        first = int(torch.randint(SEEDS, ())) if temperature else None
        given = {"max_tokens": max_new_tokens, "temperature": temperature, "n": each, "logprobs": 0 if scored else None}
        # The answers of a request have the seeds from its own on, and no two requests may share one.
        seeds = [None if first is None else first + place * each for place in range(len(prompts))]
        requests = self._generate(prompts, [given | {"seed": seed} for seed in seeds], schema, on_progress)
        found = [one for request in requests for one in (*request.outputs,) * (copies // each)]
        scores = [_read_scores(one) if scored else [] for one in found]
        return Samples([list(one.token_ids) for one in found], scores)

    def write(
        self,
        prompt: list[int],
        *,
        max_new_tokens: int,
        temperature: float,
        schema: dict[str, Any] | None = None,
        stop: Callable[[list[int]], bool] = lambda said: False,
    ) -> list[int]:
        """See `AnswerWriter`. Tokens after the end that `stop` finds were sampled, too, and are left out."""
        if not max_new_tokens:
            return []
        how: dict[str, Any] = {"max_new_tokens": max_new_tokens, "temperature": temperature, "schema": schema}
        (answer,) = self.sample([prompt], scored=False, **how).answers
        said = answer[:-1] if answer[-1:] and answer[-1] in self.ends else answer
        return next((said[:length] for length in range(len(said)) if stop(said[:length])), said)

    def weigh(self, prompt: list[int], tokens: Sequence[int]) -> list[float]:
        """See `AnswerWriter`. Raises InputError on more than MOST_WEIGHED tokens."""
        wanted = list(dict.fromkeys(tokens))
        given = {"max_tokens": 1, "temperature": 0.0, "logprobs": len(wanted), "logprob_token_ids": wanted}
        (request,) = self._generate([prompt], [given], None, lambda prompts: None)
        (known,) = request.outputs[0].logprobs
        return torch.tensor([known[token].logprob for token in tokens]).log_softmax(0).tolist()

    def _generate(
        self,
        prompts: list[list[int]],
        parameters: list[dict[str, Any]],
        schema: dict[str, Any] | None,
        on_progress: Callable[[int], None],
    ) -> list[Any]:
        """Return vLLM's result of each prompt. Raises InputError if vLLM refuses or fails."""
        from vllm import SamplingParams
        from vllm.sampling_params import StructuredOutputsParams

        each = parameters[0].get("n", 1) if parameters else 1
        bar = functools.partial(_Progress, on_progress=lambda answers: on_progress(answers // each))
        try:
            how = [
                SamplingParams(
                    **given,
                    stop_token_ids=self.ends,
                    detokenize=False,
                    structured_outputs=StructuredOutputsParams(json=schema) if schema else None,
                )
                for given in parameters
            ]
            asked = [{"prompt_token_ids": prompt} for prompt in prompts]
            return list(self._engine.generate(asked, how, use_tqdm=bar))
        except Exception as error:  # of the engine's process, too, which has errors of many kinds
            raise InputError(f"vLLM answers nothing ({_shorten(error)}); {REMEDY}") from error


def start_vllm(
    place: str | Path,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    longest: int | None = None,
    share: float | None = None,
) -> VllmAnswers:
    """Return vLLM with a saved model. It takes part of a minute.

    Args:
        place: the model's place, see `load_model`; safetensors only.
        model, tokenizer: loaded from there, on any device, for their precision and end tokens.
        longest: most tokens of a prompt and its answer; by default as many as the model knows.
        share: the part of the GPU's memory to take; by default SHARE times its free part.

    Raises InputError if vLLM is missing or does not start.
    """
    check_vllm("text.decoder")
    from vllm import LLM

    if share is None:
        if resolve_device("auto") == "cpu":
            found, change = explain_no_gpu(torch.version.cuda, find_driver())
            raise InputError(
                f"text.decoder is vllm, but torch has no CUDA device ({found}); set it to own, or {change}"
            )
        gpu = torch.device("cuda", torch.cuda.current_device())
        share = SHARE * count_free_bytes(gpu) / torch.cuda.get_device_properties(gpu).total_memory
    positions = getattr(model.config.get_text_config(), "max_position_embeddings", None) or longest
    in_bfloat16 = computes_in_bfloat16(model) or model.dtype == torch.bfloat16
    try:
        engine = LLM(
            model=prepare_place(place),
            dtype="bfloat16" if in_bfloat16 else "float32",
            load_format="safetensors",
            max_model_len=min(longest, positions) if longest and positions else positions,
            gpu_memory_utilization=share,
            logprobs_mode="processed_logprobs",  # at the sampling temperature, as ours
            max_logprobs=MOST_WEIGHED,
            # llguidance without spaces in JSON, as in this package's own decoding
            structured_outputs_config={"backend": "guidance", "disable_any_whitespace": True},
        )
    except Exception as error:  # of the engine's process, too, which has errors of many kinds
        raise InputError(f"vLLM does not start on {place} ({_shorten(error)}); {REMEDY}") from error
    return VllmAnswers(engine, tokenizer, end_tokens(model, tokenizer))


def check_vllm(setting: str) -> None:
    """Raise InputError, which names the setting that asks for vLLM, if it is not installed."""
    if importlib.util.find_spec("vllm") is None:
        raise InputError(
            f"{setting} asks for vLLM, which is not installed; pip install 'lakewright[vllm]' if there is a GPU, or "
            "set it to own"
        )


class _Progress(tqdm):
    """A bar as vLLM wants one, which shows nothing and reports how many more answers are finished."""

    def __init__(self, *args: Any, on_progress: Callable[[int], None], **given: Any) -> None:
        self._on_progress = on_progress
        super().__init__(*args, **given | {"file": io.StringIO(), "mininterval": float("inf")})

    def update(self, n: float | None = 1) -> bool | None:
        """Report n answers. A method of tqdm."""
        self._on_progress(int(n or 0))
        return super().update(n)


def _read_scores(output: Any) -> list[float]:
    """Return the log-probability of each token of one of vLLM's answers."""
    pairs = zip(output.token_ids, output.logprobs, strict=True)
    return [float(known[token].logprob) for token, known in pairs]


def _shorten(error: Exception) -> str:
    return " ".join(str(error).split())[:LONGEST_PROBLEM] or type(error).__name__
