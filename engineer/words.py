"""The words of an environment: names of problems, strata and knobs in prompts, evidence and summaries."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

if TYPE_CHECKING:
    from lakewright.engineer.cells import Knob, Stratum
    from lakewright.engineer.design import Design
    from lakewright.engineer.tally import Case, Drawn, Tally


FIELDS = ("stratum", "columns", "changes", "answer", "form", "summary")  # of a question


class RateWords(NamedTuple):
    """The names of a share of the answers.

    name: in addresses. title, short: in charts, and in the terminal. where: the problems with a trait, in a sentence.
    """

    name: str
    title: str
    short: str
    where: str = ""


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """The nouns and phrases of an environment; a subclass may phrase whole lines of the evidence.

    problem, problems, answer, answers, references, stratum, design, designs: nouns; references are reference answers.
    columns: the names of a design's values, to be left out of lines with them. path: what a field of a stratum begins
    with in messages. token: what the token of a stratum begins with. task: what the policy learns, for prompts.
    guideline: what good redesigns do. traits: the phrases of problems that have a trait, and of those that lack it, by
    knob; likewise trait_outcomes, as the beginning of a line of outcomes. failures: phrases of failures by name. rates:
    names of the share of answers that have a grade, or of valid answers to problems that have a trait, by grade or
    knob. question: the template of a question to a language model, with some of FIELDS in braces; empty for the usual
    one.
    """

    problem: str = "problem"
    problems: str = "problems"
    answer: str = "answer"
    answers: str = "answers"
    references: str = "reference answers"
    stratum: str = "stratum"
    design: str = "design"
    designs: str = "designs"
    columns: str = ""
    path: str = "strata"
    token: str = "stratum"
    task: str = "A policy learns to solve generated problems."
    guideline: str = ""
    traits: Mapping[str, tuple[str, str]] = {}
    trait_outcomes: Mapping[str, tuple[str, str]] = {}
    failures: Mapping[str, str] = {}
    rates: Mapping[str, RateWords] = {}
    question: str = ""

    def guide(self) -> str:
        """The guideline."""
        return self.guideline or (
            "Edit locally: change a few values by a little and keep what works. Act on the failures you see. "
            "Put the data just below the frontier of competence, "
            f"where some {self.answers} are valid and some are not. "
            f"Do not maximise difficulty: a {self.stratum} on which nearly every {self.answer} fails, or nearly none, "
            f"gives little signal and gets less data, but never abandon a {self.stratum}. Where an earlier edit went "
            "too far, take some back."
        )

    def label(self, stratum: "Stratum") -> str:
        """A stratum, short."""
        return str(stratum)

    def label_in_design(self, stratum: "Stratum", design: "Design", given: Mapping[str, tuple[float, ...]]) -> str:
        """A stratum as a line of a design begins.

        design: the design. given: the values that givens have in turn, if problems have several.
        """
        values = {name: given.get(name) or (value,) for name, value in design.given.items()}
        several = [f"{name} {' or '.join(f'{value:g}' for value in found)}" for name, found in values.items()]
        return ", ".join([self.label(stratum), *several])

    def trait(self, knob: "Knob", has: bool) -> str:
        """Problems that have a trait, or lack it."""
        phrases = self.traits.get(knob.name, (knob.short, f"no {knob.short}"))
        return phrases[0] if has else phrases[1]

    def trait_outcome(self, knob: "Knob", has: bool) -> str:
        """The same as the beginning of a line of outcomes."""
        phrases = self.trait_outcomes.get(knob.name, (f"with {knob.short}", f"without {knob.short}"))
        return phrases[0] if has else phrases[1]

    def grade_rate(self, name: str) -> RateWords:
        """The share of the answers that have a grade."""
        title = name.replace("_", " ")
        return self.rates.get(name, RateWords(name, title, title))

    def trait_rate(self, knob: "Knob") -> RateWords:
        """The share of valid answers to problems that have a trait; its title is a phrase after a comma."""
        phrase = self.trait_outcome(knob, True)
        return self.rates.get(knob.name, RateWords(knob.name, phrase, f"valid, {phrase}", phrase))

    def failure(self, name: str) -> str:
        """A failure."""
        return self.failures.get(name, name.replace("_", " "))

    def grades(self, tally: "Tally", names: tuple[str, ...]) -> str:
        """The shares of a tally's grades, to be written after valid answers; empty without grades."""
        return ", ".join(f"{name.replace('_', ' ')} {tally.rate(tally.grades.get(name, 0)):.2f}" for name in names)

    def drawn(self, stratum: "Stratum", seen: "Drawn") -> str:
        """The statistics of the problems drawn from a stratum, in a line."""
        knobs = "".join(f", {name} {value:.3f}" for name, value in seen.knobs.items())
        measures = "".join(f", mean {name.replace('_', ' ')} {value:.2f}" for name, value in seen.measures.items())
        accepted = "" if seen.acceptance is None else f", {seen.acceptance:.3f} of the attempts accepted"
        return f"{self.label(stratum)}: {seen.problems} {self.problems}{knobs}{measures}{accepted}"

    def measures(self, stratum: "Stratum", seen: "Drawn") -> list[float]:
        """The measures of the drawn problems, each as a share 0 to 1, for tokens."""
        return []

    def imagine_measures(self, rng: np.random.Generator) -> dict[str, float]:
        """Measures of problems that do not exist, for lessons."""
        return {}

    def case(self, case: "Case") -> list[str]:
        """A case in lines."""
        head, *rest = case.text.splitlines() or [""]
        return [
            f"{self.label(case.stratum)}, failed by {self.failure(case.failure)}: {head}",
            *(f"  {line}" for line in rest),
        ]

    def system(self) -> str:
        """The system message of a language model as the engineer."""
        return (
            f"You are the engineer of a training environment. {self.task} You read how it does, and change the "
            f"distribution of the {self.problems} that it trains on next. It is judged on held-out {self.problems}, "
            "which you cannot change."
        )

    def reasons(self) -> tuple[str, str, str]:
        """Why an edit makes problems harder or easier, or keeps them: too easy, too hard, at the frontier."""
        return (
            f"so many {self.answers} are valid here that harder {self.problems} teach more",
            f"nearly no {self.answer} is valid here, so these {self.problems} are too hard",
            f"some {self.answers} are valid and some are not, so this is the frontier of competence",
        )
