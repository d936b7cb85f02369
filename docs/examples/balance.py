"""Poles to balance, an environment whose problems are played: a problem says how Gymnasium's CartPole is changed."""

from lakewright.engineer import DesignSpace, Environment, Knob, Problem, Verdict

GOAL = 100  # steps


class Balance(Environment):
    """Strata are times between two moves, in hundredths of a second. An answer is how many steps the pole stood."""

    length = Knob(name="length", meaning="length of the pole", low=0.5, high=2.0, step=0.25, reach=1)
    force = Knob(name="weak", meaning="the share of carts that are pushed with half the force", trait=True)
    space = DesignSpace((2, 3, 4), (length, force), ranked=True, failures=("fell_at_once", "fell"))

    def make(self, cell, rng):
        changes = {
            "tau": cell.stratum / 100,
            "length": cell["length"] / 2,  # CartPole's is half of the pole
            "force_mag": 5.0 if cell["weak"] else 10.0,
        }
        return Problem(f"Balance a pole: {changes}, start {rng.getrandbits(30)}", data=changes)

    def judge(self, problem, answer):
        steps = int(answer) if answer.isascii() and answer.isdigit() and len(answer) < 9 else 0
        if steps >= GOAL:
            return Verdict(True, 1.0)
        return Verdict(False, steps / GOAL, "fell_at_once" if steps < GOAL // 2 else "fell")
