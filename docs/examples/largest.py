"""The largest of some digits, the environment of docs/trainers-tutorial.md."""

from lakewright.engineer import DesignSpace, Environment, Knob, Problem, Verdict


class Largest(Environment):
    """Digits such as `3814=`, of which the answer is the largest. Strata are how many there are."""

    top = Knob(name="top", meaning="the largest digit that is drawn", low=3, high=9, step=1, reach=2, whole=True)
    last = Knob(name="last", meaning="the share of problems whose largest digit comes last", trait=True)
    space = DesignSpace((2, 3, 4, 5), (top, last), ranked=True, failures=("no_digit", "wrong"))

    def make(self, cell, rng):
        digits = [rng.randint(0, cell["top"]) for _ in range(cell.stratum)]
        largest = max(digits)
        digits.remove(largest)
        digits.insert(len(digits) if cell["last"] else rng.randrange(len(digits)), largest)
        return Problem("".join(map(str, digits)) + "=", str(largest))

    def judge(self, problem, answer):
        if not (answer.isascii() and answer.isdigit()):
            return Verdict(False, 0.0, "no_digit")
        return Verdict(True, 1.0) if answer == problem.answer else Verdict(False, 0.0, "wrong")
