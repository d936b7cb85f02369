"""Sums of two to four numbers, the environment of docs/environments.md."""

from lakewright.engineer import DesignSpace, Environment, Knob, Problem, Verdict


class Addition(Environment):
    """Sums such as `12+34=` of some terms. A sum carries where a column of digits adds up to 10 or more."""

    digits = Knob(name="digits", meaning="digits of each term", low=1, high=4, step=1, reach=1, whole=True)
    carry = Knob(name="carry", meaning="the share of sums that carry", trait=True)
    space = DesignSpace((2, 3, 4), (digits, carry), failures=("no_number", "wrong"))

    def make(self, cell, rng):
        columns = []
        while not columns or (cell["carry"] and max(map(sum, columns)) < 10):
            columns = [self.column(cell, rng, low=int(place == 0)) for place in range(cell["digits"])]
        terms = ["".join(map(str, digits)) for digits in zip(*columns, strict=True)]
        return Problem("+".join(terms) + "=", str(sum(map(int, terms))))

    def column(self, cell, rng, low):
        while True:  # until it may be one of the cell
            digits = [rng.randint(low, 9) for _ in range(cell.stratum)]
            if cell["carry"] or sum(digits) < 10:
                return digits

    def judge(self, problem, answer):
        if not (answer.isascii() and answer.isdigit()):
            return Verdict(False, 0.0, "no_number")
        return Verdict(True, 1.0) if answer == problem.answer else Verdict(False, 0.0, "wrong")
