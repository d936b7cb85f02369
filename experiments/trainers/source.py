"""The source: problems of the current version of a design, each place pinned to the version it was first drawn from.

With a server in the settings, the policy under training is rolled out behind it, for trials and samplers.
"""

import contextlib
import functools
import operator
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, SupportsIndex

from lakewright.core_jax.errors import InputError
from lakewright.engineer.calls import show
from lakewright.engineer.environment import Environment
from lakewright.engineer.evidence import token_estimate
from lakewright.engineer.problems import Group, Problem
from lakewright.engineer.samplers import Supply, check_roll_out, choose_problems, list_places, rolls_out
from lakewright.engineer.trial import RollOut
from lakewright.experiments.jobs.resumable.spending import Spending
from lakewright.experiments.trainers.pins import Pin, PinFile, describe_choice
from lakewright.experiments.trainers.versions import FolderSettings, VersionFiles
from lakewright.policy.inference import BudgetSpentError, ChatRequest, Endpoint, price_tokens

RECENT = 4096  # problems that are not drawn again when asked for again
TRIES = 100  # of pinning, which fails only while others leave torn lines
SEEDS = 1_000_003  # between the seeds of two turns


class ProblemSource:
    """The problems of a folder and a seed, by place: 0, 1, 2, ...

    A place is pinned to the current version at the first request. Asked again, in any process, it gives the same
    problem: so a group never spans two versions, and a trainer that resumes gets the problems it had.

    position: the place of the next problem of `take`.
    """

    def __init__(self, path: str | Path, seed: int = 0, position: int = 0, *, roll_out: RollOut | None = None) -> None:
        """Opens the source of a folder.

        Args:
            path: the engineer's folder.
            seed: seed of the problems.
            position: the place of the first problem from `take`.
            roll_out: samples the current policy, for the sampler `redraw`; by default from the server `rollouts` in the
                folder's settings.

        Raises InputError without an engineer, if the seed isn't a whole number or is also the held-out problems', and
        if the folder's sampler needs `roll_out` or doesn't use it.
        """
        if not isinstance(seed, SupportsIndex):
            raise InputError(f"seed is {show(seed, 20)}; give a whole number")
        self._files, seed = VersionFiles(path), operator.index(seed)
        self.path, self.seed, self.position = self._files.folder, seed, position
        self.environment, setup = self._files.load_environment(), self._files.read_setup()
        if seed == setup.held_out_seed:
            raise InputError(f"seed is {seed}, the seed of the held-out problems; choose another")
        self.sampler, self._given = setup.settings.sampler, roll_out
        self._roll_out = self._find_rollouts(setup.settings) if roll_out is None else roll_out
        check_roll_out(self.sampler, self._roll_out, given=roll_out is not None)
        self._file = PinFile(self.path / f"pins-{seed}.jsonl")
        self._pins = self._file.pins
        self._stamp: tuple[int, ...] = ()
        self._version = 0
        self._design = functools.cache(lambda version: self._files.read_version(version).design)
        self._forecast = functools.lru_cache(1)(lambda version, stamp: self._files.read_forecast(version))
        self._problem = functools.lru_cache(RECENT)(self._draw_problem)

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens the folder again."""
        return functools.partial(type(self), roll_out=self._given), (self.path, self.seed, self.position)

    @property
    def version(self) -> int:
        """The current version; asking costs a look at the time of `design.json`."""
        try:
            seen = os.stat(self._files.design_path)
        except FileNotFoundError:
            raise InputError(f"{self._files.design_path}: is missing; lakewright engineer next writes it") from None
        stamp = (seen.st_mtime_ns, seen.st_ino, seen.st_size)
        if stamp != self._stamp:
            self._version, self._stamp = self._files.newest(), stamp
        return self._version

    def __getitem__(self, place: int) -> Problem:
        """The problem of a place."""
        return self.problems([place])[0]

    def take(self, count: int) -> list[Problem]:
        """The problems of the next places. Raises InputError on a count that is not a whole number from 0."""
        places = list_places(self.position, count, "take")
        problems = self.problems(places)
        self.position = places.stop
        return problems

    def problems(self, places: Sequence[int]) -> list[Problem]:
        """The problems of some places. Raises InputError on anything but whole numbers from 0."""
        for place in places:
            if not isinstance(place, SupportsIndex) or not 0 <= place < 2**63:
                raise InputError(f"place is {place!r:.30}; give a whole number, at least 0, below 2^63")
        places = [operator.index(place) for place in places]  # of NumPy, as of a permutation
        self._pin_places(places)
        return [self._find(place) for place in places]

    @functools.cached_property
    def held_out(self) -> list[Problem]:
        """The held-out problems of the folder."""
        return self._files.draw_held_out(self.environment)

    def find_problem(self, place: int, split: str) -> Problem:
        """The problem of a place, or of a place among the held-out problems if `split` is `held_out`."""
        return self.held_out[place] if split == "held_out" else self[place]

    def name_group(self, place: int, split: str, step: int | str) -> str:
        """The name of the group of answers to the problem of a place at a step of the trainer."""
        return f"{split} {self.seed} {place} step {step}"

    def find_free_place(self) -> int:
        """The place after all places that some process has asked for."""
        self._file.read()
        return max(self._pins, default=-1) + 1

    def find_pinned(self, place: int) -> Problem | None:
        """The problem of a place that some process has asked for; None for any other."""
        self._file.read()
        return self._find(place) if place in self._pins else None

    def _find(self, place: int) -> Problem:
        pin = self._pins[place]
        return self._problem(place, pin.version, pin.turn)

    def _pin_places(self, places: Iterable[int]) -> None:
        """Pins places; if two processes pin one at the same time, the line that comes first in the file counts."""
        for _ in range(TRIES):
            if not (missing := self._list_missing(places)):
                return
            # Answers cost more than waiting for those of another process.
            with self._file.hold() if rolls_out(self.sampler) else contextlib.nullcontext():
                if missing := self._list_missing(missing):
                    self._file.append(self._choose(missing))
        raise InputError(f"{self._file.path}: place {missing[0]} cannot be pinned; move the file away")

    def _list_missing(self, places: Iterable[int]) -> list[int]:
        """The places without a pin, each once."""
        missing = [place for place in dict.fromkeys(places) if place not in self._pins]
        if missing and self._file.read():
            missing = [place for place in missing if place not in self._pins]
        return missing

    def _choose(self, places: list[int]) -> list[Pin]:
        """The pins of places: of the present version, and what the sampler chooses."""
        version = self.version
        if self.sampler.name == "fresh":
            return [Pin(place, version) for place in places]
        forecast = self._forecast(version, self._stamp)
        supply = Supply(self.environment, self._design(version), self.seed, places, forecast)
        return describe_choice(places, version, *choose_problems(self.sampler, supply, self._roll_out))

    def _find_rollouts(self, settings: FolderSettings) -> RollOut | None:
        """Rollouts at the server of a folder, if the sampler needs any."""
        if not rolls_out(settings.sampler):
            return None
        return find_served_policy(settings, self.environment, self.path / f"sampler-{self.seed}" / "spending.jsonl")

    def _draw_problem(self, place: int, version: int, turn: int) -> Problem:
        supply = Supply(self.environment, self._design(version), self.seed, [place])
        (problem,) = supply(1)
        return supply.draw_again(0, turn) if turn else problem


def find_served_policy(settings: FolderSettings, environment: Environment, spending: Path) -> RollOut | None:
    """A function that rolls out the current policy of the server `rollouts` in a folder's settings; None without one.

    Args:
        settings: the folder's settings.
        environment: judges the answers.
        spending: the file of charges, to which each request is added.

    The function raises InputError if the server doesn't answer, or the cost cap leaves no room.
    """
    if (server := settings.rollouts) is None:
        return None
    spent, temperature = Spending(spending), settings.rollout_temperature

    def roll_out(problems: Sequence[Problem], samples: int, turn: int) -> tuple[list[Group], int]:
        endpoint = Endpoint(server, price_tokens(server, *spent.count_tokens()), spent.add)
        questions = [
            ChatRequest([{"role": "user", "content": problem.prompt}], temperature, seed=SEEDS * turn + place)
            for place, problem in enumerate(problem for problem in problems for _ in range(samples))
        ]
        texts, tokens = [[""] * samples for _ in problems], 0
        try:
            with spent:
                for place, answer in endpoint.ask_all(questions):
                    texts[place // samples][place % samples] = answer.text
                    counted = answer.completion_tokens
                    tokens += token_estimate(answer.text) if counted is None else counted
        except BudgetSpentError:
            cap = server.max_cost
            raise InputError(f"rollouts: the cost cap of {cap} dollars leaves no room for more; raise it") from None
        return environment.groups(problems, texts), tokens

    return roll_out
