"""Every setting of an engineer changes something that the engineer does: none is accepted and without effect."""

import random
from collections.abc import Iterator

import msgspec
import pytest

from lakewright.core_jax.support import convert
from lakewright.engineer import Engineer, EngineerSettings
from lakewright.engineer.teachers import Reply
from lakewright.engineer.teachers.models import Tools
from tests.engineer.test_environment import Sums, row

ENVIRONMENT = Sums()
UNEVEN = ENVIRONMENT.space.design({"sums": row(0.75, 6, 0.5), 3: row(0.25, 4, 0.5)})
HELD_OUT = ENVIRONMENT.draw(UNEVEN, 60, seed=9)
REGRESSION = {"difficulty.model": "regression"}
TRIED = {"proposals": 3}
CHANGES: dict[str, tuple[object, dict[str, object]]] = {
    "evidence.preset": ("v1", {}),
    "evidence.modules": ({"cases": True}, {}),
    "evidence.budget": (120, {}),
    "difficulty.decay": (0.1, REGRESSION),
    "difficulty.objective": ("regret", {}),
    "difficulty.by_size": (2.0, REGRESSION),
    "difficulty.held_out": (True, REGRESSION),
    "difficulty.reach": (2.0, {}),
    "difficulty.model": ("regression", {}),
    "difficulty.weigh": ("strata", {}),
    "guard.floor": (0.4, {}),
    "guard.reach": ({"share": 0.01, "terms": 1.0}, {}),
    "guard.most": ({"terms": 5}, {}),
    "guard.widen": (0.0, {"guard.reach": {"share": 0.01, "terms": 1.0, "noise": 0.01}}),
    "guard.tries": (1, {}),
    "trial.enabled": (False, {}),
    "trial.boards": (16, {}),
    "trial.samples": (2, {}),
    "trial.share": (0.1, {}),
    "trial.shortlist": (1, TRIED),
    "trial.prior": (False, {}),
    "rollback.enabled": (False, {}),
    "rollback.level": (0.0, {}),
    "rollback.weights": (True, {}),
    "proposals": (2, {}),
    "sampler.name": ("redraw", {}),
    "sampler.options": ({"turns": 1}, {"sampler.name": "redraw"}),
    "sampler.plans": (2, {"sampler.name": "redraw"}),
}
"""Of each setting another value, and the settings beside which it has a meaning."""


def list_settings(kind: type[msgspec.Struct], path: str = "") -> Iterator[str]:
    for field in msgspec.structs.fields(kind):
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield from list_settings(field.type, f"{path}{field.name}.")
        else:
            yield path + field.name


def make_settings(values: dict[str, object]) -> EngineerSettings:
    raw: dict[str, dict[str, object]] = {"trial": {"boards": 8, "share": 0}}
    for name, value in values.items():
        part, _, field = name.rpartition(".")
        (raw.setdefault(part, {}) if part else raw)[field] = value
    return convert(raw, EngineerSettings, "settings")


def answer_problems(problems, rate):
    """An answer to each problem, right for this share of them; shorter sums are easier."""
    texts = []
    for problem in problems:
        terms, noise = problem.cell.values
        right = random.Random(problem.key).random() < rate - 0.05 * terms - 0.2 * noise
        texts.append(problem.answer if right else "?")
    return texts


def roll_out(problems, samples, turn):
    texts = [answer_problems([problem] * samples, 0.9) for problem in problems]
    mixed = [[text if at % 2 else "?" for at, text in enumerate(row)] for row in texts]
    return ENVIRONMENT.groups(problems, mixed), 5 * samples


def record_rounds(settings: EngineerSettings, teacher: str) -> list[bytes]:
    """All that an engineer is asked, decides and knows in four rounds, of which the third lowers validation."""
    asked: list[object] = []

    def ask(messages, schema, seed):
        asked.append([messages, schema])
        delta = '{"edits": {"3": {"share": 0.3, "terms": 2, "noise": 0, "reason": "why"}}}'
        return Reply("no idea" if len(asked) % 3 == 1 else delta, 7)

    tools = Tools(settings.evidence, ask=ask, proposals=settings.proposals)
    engineer = Engineer(
        ENVIRONMENT, teacher, held_out=HELD_OUT, settings=settings, roll_out=roll_out, tools=tools, rounds=5, seed=2
    )
    told = []
    for rate in (0.8, 1.0, 0.4, 0.9):
        problems = engineer.draw(16)
        engineer.observe(
            ENVIRONMENT.groups(
                problems, [[problem.answer, *answer_problems([problem] * 3, rate)] for problem in problems]
            )
        )
        texts = answer_problems(HELD_OUT, rate)
        cases = ENVIRONMENT.cases(HELD_OUT, texts, ENVIRONMENT.verdicts(HELD_OUT, texts), 3)
        decision = engineer.redesign(ENVIRONMENT.tallies(HELD_OUT, texts), cases=cases, training={"loss": 0.5})
        told.append(msgspec.json.encode(decision))
    return [*told, msgspec.json.encode(asked), msgspec.json.encode(engineer.state_dict())]


@pytest.fixture(scope="module")
def known() -> dict[str, list[bytes]]:
    """Rounds that were recorded, by settings and teacher."""
    return {}


def test_all_settings_are_tried():
    assert set(CHANGES) == set(list_settings(EngineerSettings))


@pytest.mark.parametrize("name", CHANGES)
def test_a_setting_changes_what_an_engineer_does(name, known):
    value, beside = CHANGES[name]
    found = []
    for teacher in ("difficulty", "endpoint"):
        pair = []
        for values in (beside, {**beside, name: value}):
            label = f"{teacher} {values}"
            if label not in known:
                known[label] = record_rounds(make_settings(values), teacher)
            pair.append(known[label])
        found.append(pair[0] != pair[1])
    assert any(found), f"{name} = {value} is accepted and changes nothing"
