"""Run by the Python of an environment with reasoning-gym: its own registry, curriculum and scoring on our dataset."""

import json

import reasoning_gym
from reasoning_gym.coaching.base_curriculum import DefaultCurriculumContext, RangeAttributeMode
from reasoning_gym.composite import CompositeConfig, CompositeDataset, DatasetSpec
from reasoning_gym.factory import create_curriculum
from reasoning_gym_lakewright import NAME

SMALL = {"min_board_size": 3, "max_board_size": 4, "agents": 2, "seed": 42}

lake = reasoning_gym.create_dataset(NAME, size=40, **SMALL)
entries = list(lake)
assert len(entries) == len(lake) == 40
assert json.loads(json.dumps(entries[3]))["question"] == entries[3]["question"], "an entry is no JSON"
assert {entry["metadata"]["row"]["size"] for entry in entries} == {3, 4}
assert len({entry["question"] for entry in entries}) > 35, "hardly a question is new"

again = reasoning_gym.create_dataset(NAME, size=60, **SMALL)
assert [again[index] for index in range(40)] == entries, "a question depends on how many there are"
assert reasoning_gym.create_dataset(NAME, size=2, **(SMALL | {"seed": 43}))[0] != entries[0]

for entry in entries:
    answer = entry["answer"]
    assert lake.score_answer(answer, entry) == 1.0, entry
    assert lake.score_answer(f"I thought long about it.\n\n{answer}", entry) == 1.0, entry
    for unclear in (f"{answer} or so", answer.replace("agent 1", "agent 7"), answer[: len(answer) // 2], "", None):
        assert lake.score_answer(unclear, entry) == 0.0, f"{unclear!r} earns something: {entry}"
    longer = "\n".join(f"{line} LEFT RIGHT" for line in answer.splitlines())
    assert lake.score_answer(longer, entry) < 0.77, f"a detour is not worth less: {entry}"
detours = [lake.score_answer(entry["answer"].replace("agent 0: ", "agent 0: WAIT "), entry) for entry in entries]
assert any(0.7 < detour < 1 for detour in detours), detours

curriculum = create_curriculum(NAME)
for level in range(5):
    curriculum.set_global_level(level)
    config = curriculum.generate_configuration({"seed": 1, "size": 2})
    config.validate()
hardest = curriculum.generate_configuration(
    {"seed": 1, "size": 2}, DefaultCurriculumContext(RangeAttributeMode.UPPER_BOUND)
)
assert (hardest.min_board_size, hardest.max_board_size, hardest.agents) == (8, 10, 4), hardest
assert not curriculum.increment_global_level()
assert curriculum.decrement_global_level()

mixed = CompositeDataset(
    CompositeConfig(
        size=6,
        seed=1,
        datasets=[
            DatasetSpec(name=NAME, weight=1, config=SMALL),
            DatasetSpec(name="leg_counting", weight=1, config={}),
        ],
    )
)
ours = [entry for entry in mixed if entry["metadata"]["source_dataset"] == NAME]
assert ours, "the mixture holds none of our questions"
assert all(mixed.score_answer(entry["answer"], entry) == 1.0 for entry in ours)

for wrong in ({"agents": 9}, {"min_board_size": 2}, {"hole_ratio": 0.9}, {"min_board_size": 6, "max_board_size": 5}):
    refused = ""
    try:
        reasoning_gym.create_dataset(NAME, **wrong)
    except AssertionError as error:
        refused = str(error)
    assert "choose" in refused, f"{wrong} is not refused with what to choose: {refused!r}"
print("reasoning-gym", reasoning_gym.__version__)
