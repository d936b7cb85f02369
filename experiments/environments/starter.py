"""An environment of one's own: problems are drawn by a design, and answers are judged."""

from lakewright.engineer import DesignSpace, Environment, Knob, Problem, Verdict


class Starter(Environment):
    """Words to be written backwards, of small letters alone or also of capitals."""

    # What the engineer may change. A stratum has a share of the problems; here there are two, from easy to hard.
    # A level such as `length` is a value that all problems have; at most `reach` is added in a round.
    # A trait such as `capitals` is the share of the problems that have a property.
    # Failures are all the ways in which an answer can be wrong; the engineer reads how often each happens.
    space = DesignSpace(
        strata=("one_word", "two_words"),
        knobs=(
            Knob(name="length", meaning="letters in a word", low=4, high=12, step=1, reach=2, whole=True),
            Knob(name="capitals", meaning="the share of problems with capitals", trait=True),
        ),
        failures=("wrong_length", "wrong"),
    )

    def make(self, cell, rng):
        """A problem of a cell: `cell.stratum`, and the knobs by name. All chance comes from `rng`."""
        letters = "abcdefghijklmnopqrstuvwxyz"
        words = []
        for _ in range(2 if cell.stratum == "two_words" else 1):
            word = "".join(rng.choice(letters) for _ in range(cell["length"]))
            words.append(word.capitalize() if cell["capitals"] else word)
        text = " ".join(words)
        return Problem(prompt=f"Write backwards: {text}", answer=text[::-1])

    def judge(self, problem, answer):
        """The verdict on any text. A reward is a finite number; a failure is one of those of the space."""
        if answer == problem.answer:
            return Verdict(valid=True, reward=1.0)
        failure = "wrong" if len(answer) == len(problem.answer) else "wrong_length"
        return Verdict(valid=False, reward=0.0, failure=failure)
