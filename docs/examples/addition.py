"""Sums of two to four numbers, the environment of docs/environments.md."""

from lakewright.engineer import DesignSpace, Environment, Knob, Problem, Verdict


class Addition(Environment):
    """Sums such as `12+34=`. Strata are numbers of digits; a sum carries where a column adds up to 10 or more."""

    terms = Knob(name="terms", meaning="the most numbers that are added", low=2, high=4, step=1, reach=1, whole=True)
    carry = Knob(name="carry", meaning="the share of sums that carry", trait=True)
    space = DesignSpace((1, 2, 3, 4), (terms, carry), ranked=True, failures=("no_number", "wrong"))

    def make(self, cell, rng):
        columns, count = [], rng.randint(2, cell["terms"])
        while not columns or (cell["carry"] and max(map(sum, columns)) < 10):
            columns = [self.column(cell, rng, count, low=int(place == 0)) for place in range(cell.stratum)]
        terms = ["".join(map(str, digits)) for digits in zip(*columns, strict=True)]
        return Problem("+".join(terms) + "=", str(sum(map(int, terms))))

    def column(self, cell, rng, count, low):
        while True:  # until it may be one of the cell
            digits = [rng.randint(low, 9) for _ in range(count)]
            if cell["carry"] or sum(digits) < 10:
                return digits

    def judge(self, problem, answer):
        if not (answer.isascii() and answer.isdigit()):
            return Verdict(False, 0.0, "no_number")
        return Verdict(True, 1.0) if answer == problem.answer else Verdict(False, 0.0, "wrong")
