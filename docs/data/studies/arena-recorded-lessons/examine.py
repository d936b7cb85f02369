"""How well do engineers read evidence of several kinds? The experiment of docs/lab/lessons-from-recorded-runs.md.

    python docs/data/studies/arena-recorded-lessons/examine.py STUDIES OUT.json

STUDIES has the folders of the studies arena-first, arena-random-lessons and arena-recorded-lessons, and where it is
examined, too, of arena-late-lessons.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tqdm import tqdm

from lakewright.core_jax.support import write_json
from lakewright.engineer.evidence import show_evidence
from lakewright.engineer.evidence.token_form import delta_tokens, evidence_tokens, read_tokens
from lakewright.engineer.evidence.vocabulary import DeltaGrammar
from lakewright.engineer.lessons import measure_agreement, synthetic_examples
from lakewright.engineer.random_generators import make_key
from lakewright.experiments.loop.records.run_folder import Stage
from lakewright.experiments.loop.training.policy_models import load_engineer
from lakewright.experiments.loop.training.trainee import make_trainee
from lakewright.experiments.studies.study import plan_study
from lakewright.policy.inference import answer_under_grammar

QUESTIONS = 100  # of each kind, at most
LATE = 6  # the first stage that is late
SEEN = ("s0", "s1", "s2", "s3", "s4")  # the seeds of arena-first of which lessons were made
SPEC = Path(__file__).parents[1] / "arena-random-lessons" / "spec.toml"
SETTINGS = plan_study(SPEC).start
TRAINEE = make_trainee(SETTINGS)
SPACE = TRAINEE.environment.space

Question = tuple[str, tuple[list[str], list[str]]]  # the run that it is from, the prompt and the answer of the rule


def main(studies: Path, out: Path) -> None:
    """Examines each checkpoint on each kind of evidence, and writes the shares of changes as taught."""
    kinds = list_kinds(studies)
    checkpoints = list_checkpoints(studies)
    asked = [(name, kind) for name in checkpoints for kind in kinds]
    rows = [
        {"engineer": name, "evidence": kind} | examine(checkpoints[name], kinds[kind]) for name, kind in tqdm(asked)
    ]
    write_json(out, rows)
    print(json.dumps(rows, indent=1))


def list_kinds(studies: Path) -> dict[str, list[Question]]:
    """The questions of each kind of evidence."""
    rng = np.random.default_rng(1)
    drawn = synthetic_examples(QUESTIONS, TRAINEE.start, SPACE, SETTINGS.stages, rng, SETTINGS.taught)
    first = sorted((studies / "arena-first" / "runs").glob("*/stage_*"))
    own = sorted((studies / "arena-random-lessons" / "runs").glob("self-*/stage_*"))
    seen = [stage for stage in first if stage.parent.name.endswith(SEEN)]
    unseen = [stage for stage in first if stage not in seen]
    chosen = {
        "recorded, of which lessons were made": seen,
        "recorded, new": unseen,
        "recorded, new, early": [stage for stage in unseen if number_of(stage) < 2],
        "recorded, new, late": [stage for stage in unseen if number_of(stage) >= LATE],
        "of its own runs, early": [stage for stage in own if number_of(stage) < 2],
        "of its own runs, late": [stage for stage in own if number_of(stage) >= LATE],
    }
    asked = {kind: choose(stages, rng) for kind, stages in chosen.items()}
    return {"drawn at random": [(str(number), one) for number, one in enumerate(drawn)]} | asked


def number_of(stage: Path) -> int:
    """The number of a stage in its run."""
    return int(stage.name.removeprefix("stage_"))


def choose(stages: Sequence[Path], rng: np.random.Generator) -> list[Question]:
    """Questions about the evidence of some of these stages, with the answers of the rule."""
    finished = [stage for stage in stages if (stage / "evidence.json").exists()]
    kept = rng.permutation(len(finished))[:QUESTIONS]
    return [(finished[number].parent.name, make_question(finished[number])) for number in sorted(kept)]


def make_question(stage: Path) -> tuple[list[str], list[str]]:
    """The prompt and the answer of the rule, in tokens."""
    (modules,) = SETTINGS.taught.kinds
    view = show_evidence(Stage(stage).read_evidence(), modules, make_key(0))
    return evidence_tokens(view, SPACE), delta_tokens(SETTINGS.taught.rule.make_delta(view, view.design, SPACE), SPACE)


def list_checkpoints(studies: Path) -> dict[str, list[Path]]:
    """The checkpoints of each engineer: one, or the last of each run."""
    random_lessons, recorded_lessons = studies / "arena-random-lessons", studies / "arena-recorded-lessons"
    runs = sorted((random_lessons / "runs").glob("self-*"))
    late_lessons = studies / "arena-late-lessons/start/warmup/checkpoint"
    late = {"half as late in a run, warm-up": [late_lessons]} if late_lessons.exists() else {}
    return {
        "lessons at random, warm-up": [random_lessons / "start/warmup/checkpoint"],
        "lessons at random, after training": [sorted(run.glob("stage_*/checkpoint"))[-1] for run in runs],
        "half recorded, warm-up": [recorded_lessons / "start/warmup/checkpoint"],
        **late,
    }


def examine(checkpoints: Sequence[Path], questions: Sequence[Question]) -> dict[str, float]:
    """The share of changes as taught, of chance, and a 95 % interval by bootstrap over runs; means over checkpoints."""
    answers = [ask(checkpoint, questions) for checkpoint in checkpoints]
    shares = np.mean([[share for share, _ in each] for each in answers], axis=0)
    chance = np.mean([[other for _, other in each] for each in answers])
    runs = sorted({run for run, _ in questions})
    members = [shares[[run == name for name, _ in questions]] for run in runs]
    rng = np.random.default_rng(0)
    again = [
        np.concatenate([members[one] for one in rng.integers(len(runs), size=len(runs))]).mean() for _ in range(2000)
    ]
    low, high = np.percentile(again, [2.5, 97.5])
    return {
        "questions": len(questions),
        "agreement": float(shares.mean()),
        "low": float(low),
        "high": float(high),
        "chance": float(chance),
    }


def ask(checkpoint: Path, questions: Sequence[Question]) -> list[tuple[float, float]]:
    """For each question the share of changes as taught, and the share that is as taught for the next question."""
    model, tokenizer = load_engineer(SETTINGS, checkpoint)
    allowed = DeltaGrammar(SPACE, TRAINEE.start.strata).allowed
    given = [
        read_tokens(answer_under_grammar(model, tokenizer, prompt, allowed), SPACE) for _, (prompt, _) in questions
    ]
    right = [read_tokens(answer, SPACE) for _, (_, answer) in questions]
    return [
        (measure_agreement(delta, taught, TRAINEE.start, SPACE), measure_agreement(delta, other, TRAINEE.start, SPACE))
        for delta, taught, other in zip(given, right, [*right[1:], right[0]], strict=True)
    ]


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
