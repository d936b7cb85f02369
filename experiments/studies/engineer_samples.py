"""Samples of a language model's answers to one question of the loop, with counts of those that can be used.

Each model answers freely, by the prompt alone, and under the mask that admits only JSON of the schema.
"""

import itertools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TypeGuard

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import derive_seed, listed, write_json
from lakewright.engineer.design import Delta, Design
from lakewright.engineer.guard import GuardVerdict
from lakewright.engineer.random_generators import make_key
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.teachers import Asked, ask_about, parse_reply
from lakewright.engineer.trial import measure_leads
from lakewright.experiments.jobs.resumable.claims import Claim
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_records import read_record
from lakewright.experiments.loop.redesign.run_engineer import start_trial
from lakewright.experiments.loop.redesign.teacher_models import make_engineer
from lakewright.experiments.loop.settings.older_settings import complete_run
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.experiments.loop.training.policy_models import load_engineer
from lakewright.experiments.loop.training.trainee import Trainee
from lakewright.policy.inference import SchemaSettings, sample_in_json
from lakewright.policy.models import TEXT, check_codec

TOGETHER = 25  # answers sampled at once
SHOWN = 5


class SamplesQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """sampling.json: the question, so that a folder of answers belongs to one question."""

    format: int
    run: str
    settings: RunSettings
    stage: int
    models: list[str]
    answers: int


class SavedAnswers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """answers-N.json: the answers so far of one model, with the mask or without."""

    said: list[str]


CLAIM = Claim(
    "sample of engineers' answers",
    "sampling.json",
    SamplesQuestion,
    1,
    "lakewright engineer sample",
    complete=complete_run,
)


class EngineerAnswers(msgspec.Struct, frozen=True):
    """Answers of a model to the question after a stage, with the mask or without.

    Counts of answers that are parsed, that the guard accepts as they are, that it clips, and that it refuses;
    of parsed answers that change nothing; and of different designs that they lead to. said: all of them. won: answers
    whose design is more likely better than the current one than not, by a trial; None without one.
    """

    model: str
    masked: bool
    answers: int
    parsed: int
    accepted: int
    projected: int
    refused: int
    unchanged: int
    configs: int
    errors: dict[str, int]
    said: list[str]
    won: int | None = None


def sample_engineers(
    trainee: Trainee,
    folder: RunFolder,
    number: int,
    places: Sequence[str],
    answers: int,
    on_progress: Callable[[int], object] = lambda answers: None,
    trial: bool = False,
    out: Path | None = None,
) -> list[EngineerAnswers]:
    """`answers` answers of each model to the question after stage `number`, without the mask and with it.

    Args:
        trainee, folder, number: the run and its stage.
        places: the models' places.
        answers: the number of answers of each model.
        on_progress: gets the number of further answers.
        trial: whether each proposed design is tried beside the current one, with the policy of the stage.
        out: a folder that saves the answers as they come, where the same call continues.

    Raises InputError if a model is not a language model, if the folder holds other answers, or if another process works
    there.
    """
    settings, environment, stage = trainee.settings, trainee.environment, folder.stage(number)
    space, key = environment.space, make_key(derive_seed(settings.seed, f"stage {number} samples"))
    asked = ask_about(stage.read_evidence(), stage.design(), space, settings.evidence, key)
    engineer, known = make_engineer(settings, environment, stage.design()), stage.read_forecast()
    answered: list[EngineerAnswers] = []
    proposed: list[list[Design]] = []
    work = SamplesQuestion(CLAIM.format, str(folder.folder), settings, number, list(places), answers)
    with CLAIM.hold_folder(out, work) if out is not None else nullcontext():
        for place, masked in itertools.product(places, (False, True)):
            saved = out / f"answers-{len(answered)}.json" if out is not None else None
            said = _sample_answers(settings, place, asked, masked, answers, on_progress, saved)
            verdicts = [_judge_text(text, space, lambda delta: engineer.judge_delta(delta, known)) for text in said]
            answered.append(_count_answers(place, masked, said, verdicts, stage.design()))
            proposed.append([verdict.design for verdict in verdicts if _is_change(verdict, stage.design())])
    if not trial:
        return answered
    winners = _find_winners(trainee, folder, number, proposed)
    return [
        msgspec.structs.replace(one, won=sum(design in winners for design in designs))
        for one, designs in zip(answered, proposed, strict=True)
    ]


def _is_change(verdict: GuardVerdict | str, current: Design) -> TypeGuard[GuardVerdict]:
    return isinstance(verdict, GuardVerdict) and verdict.status != "refused" and verdict.design != current


def _find_winners(
    trainee: Trainee, folder: RunFolder, number: int, proposed: Sequence[Sequence[Design]]
) -> list[Design]:
    """The designs that are, by a trial, more likely better than the stage's design than not."""
    rivals: list[Design] = []
    for design in itertools.chain.from_iterable(proposed):
        if design not in rivals:
            rivals.append(design)
    if not rivals:
        return []
    work = start_trial(trainee, folder.find_standing(number), f"stage {number} samples")
    leads = measure_leads(work, folder.stage(number).design(), rivals)
    return [rival for rival, lead in zip(rivals, leads, strict=True) if lead.better > 0.5]


def _sample_answers(
    settings: RunSettings,
    place: str,
    asked: Asked,
    masked: bool,
    answers: int,
    on_progress: Callable[[int], object],
    saved: Path | None,
) -> list[str]:
    """The answers of a model. saved: the file with earlier samples."""
    said = read_record(saved, SavedAnswers).said if saved is not None and saved.exists() else []
    on_progress(len(said))
    if len(said) == answers:
        return said
    model, tokenizer = load_engineer(settings, place)
    check_codec(place, TEXT, model)
    sampling = SchemaSettings(0, settings.engineer.answer, settings.engineer.temperature or 1.0)
    while len(said) < answers:
        copies = min(TOGETHER, answers - len(said))
        seed = derive_seed(settings.seed, f"engineer samples {masked} {len(said)}")
        schema = asked.schema if masked else None
        said += sample_in_json(model, tokenizer, asked.messages, schema, sampling, copies, seed)
        if saved is not None:
            with listed(saved):
                write_json(saved, SavedAnswers(said))
        on_progress(copies)
    return said


def _judge_text(text: str, space: DesignSpace, judged: Callable[[Delta], GuardVerdict]) -> GuardVerdict | str:
    """The guard's verdict, or why the answer cannot be read."""
    try:
        return judged(parse_reply(text, space)[0])
    except InputError as error:
        return str(error)


def _count_answers(
    place: str, masked: bool, said: list[str], verdicts: Sequence[GuardVerdict | str], current: Design
) -> EngineerAnswers:
    parsed = [verdict for verdict in verdicts if isinstance(verdict, GuardVerdict)]
    unread = [verdict.split(";")[0][:60] for verdict in verdicts if isinstance(verdict, str)]
    status = [verdict.status for verdict in parsed]
    designs = [verdict.design for verdict in parsed if verdict.status != "refused"]
    return EngineerAnswers(
        place,
        masked,
        answers=len(said),
        parsed=len(parsed),
        accepted=status.count("accepted"),
        projected=status.count("projected"),
        refused=status.count("refused"),
        unchanged=sum(design == current for design in designs),
        configs=len({msgspec.json.encode(design) for design in designs}),
        errors={error: unread.count(error) for error in dict.fromkeys(unread)},
        said=said,
    )


def format_samples(found: Sequence[EngineerAnswers]) -> str:
    """The counts as Markdown, and the first answers of each model below."""
    parts = [format_counts(found)]
    for one in found:
        parts.append(f"{one.model}, {'with' if one.masked else 'without'} the mask:")
        parts += [f"  {number + 1}. {text!r}" for number, text in enumerate(one.said[:SHOWN])]
    return "\n\n".join(parts)


def format_counts(found: Sequence[EngineerAnswers]) -> str:
    """The counts as Markdown, one line for each model without the mask and with it."""
    from tabulate import tabulate

    header = ("model", "mask", "answers", "parsed", "accepted", "clipped", "refused", "no change", "configs", "won")
    rows = [
        (
            *(one.model, "yes" if one.masked else "no", one.answers, one.parsed),
            *(one.accepted, one.projected, one.refused, one.unchanged, one.configs),
            "not tried" if one.won is None else one.won,
        )
        for one in found
    ]
    return tabulate(rows, header, tablefmt="github")
