"""Episodes on the problems of a folder, for environments that are reset and stepped."""

import zlib
from pathlib import Path

from lakewright.core_jax.errors import InputError
from lakewright.engineer.environment import Environment
from lakewright.engineer.problems import Problem, Verdict
from lakewright.experiments.trainers.recorder import OutcomeRecorder
from lakewright.experiments.trainers.source import ProblemSource


class EpisodeBook:
    """The episodes of one of several environments that share the places of a source.

    Environment 2 of 8 has the places 2, 10, 18, ...; so they never wait for each other, and each has the same problems
    again after a restart. A problem stays until its last episode has ended: a reset before that begins it again.

    Args:
        position: how many episodes have ended.
    """

    def __init__(
        self, path: str | Path, *, seed: int = 0, index: int = 0, count: int = 1, episodes: int = 1, position: int = 0
    ) -> None:
        """Opens the folder.

        Args:
            path: the engineer's folder.
            seed: seed of the problems.
            index, count: the number of this environment, and how many there are.
            episodes: consecutive episodes on one problem; they are a group.
            position: episodes that ended before, if a trainer resumes.

        Raises InputError without an engineer, or if a number is out of range.
        """
        if min(count, episodes) < 1 or not 0 <= index < count or position < 0:
            raise InputError(
                f"index is {index}, count {count}, episodes {episodes}, position {position}; "
                "choose count and episodes from 1, index from 0 to count - 1, position from 0"
            )
        self.seed, self.index, self.count, self.episodes, self.position = seed, index, count, episodes, position
        self._source = ProblemSource(path, seed)
        self._recorder = OutcomeRecorder(path, self._source.environment)

    @property
    def environment(self) -> Environment:
        """The folder's environment."""
        return self._source.environment

    @property
    def place(self) -> int:
        """The place of the current episode."""
        return self.position // self.episodes * self.count + self.index

    def find_problem(self) -> Problem:
        """The problem of the current episode."""
        return self._source[self.place]

    def end_episode(self, outcome: str | Verdict, steps: int) -> Verdict:
        """Records the current episode, and begins the next one.

        outcome: a text that the environment judges, or a verdict. steps: the length of the episode.

        Raises InputError, and stays at this episode, if the outcome cannot be recorded.
        """
        text, given = ("", [outcome]) if isinstance(outcome, Verdict) else (outcome, None)
        verdict = self._recorder.record(
            self.find_problem(),
            [text],
            given,
            tokens=[steps],
            group=f"episodes {self.seed} {self.place}",
            first=self.position % self.episodes,
        )[0]
        self.position += 1
        return verdict


def make_seed(problem: Problem) -> int:
    """A seed for what else an environment draws: the same for the same problem, 0 to 2**31 - 1."""
    return zlib.crc32(problem.key.encode()) >> 1
