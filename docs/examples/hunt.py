"""A number to be found by guesses: an environment of several turns, whose tool a policy calls."""

from lakewright.engineer import DesignSpace, Knob, MultiTurnEnvironment, MultiTurnEpisode, Problem, Verdict


class Hunting(MultiTurnEpisode):
    """Plays a hunt. `guess` is the policy's tool."""

    def reset(self, problem):
        self.stratum, self.number, self.left = problem.cell.stratum, problem.data["number"], problem.data["guesses"]
        self.begun = self.found = False

    def guess(self, number: int) -> str:
        """Guesses the hidden number.

        Args:
            number: The guess.

        Returns:
            What the guess says about the hidden number.
        """
        if not isinstance(number, int):
            raise ValueError(f"{number!r:.40} is no whole number")
        if self.found or not self.left:
            return "The hunt is over."
        self.begun, self.left, self.found = True, self.left - 1, number == self.number
        if self.found:
            return "Found."
        if self.stratum == "distance":
            return f"It is {abs(number - self.number)} away."
        return "It is higher." if self.number > number else "It is lower."

    def verdict(self):
        if self.found:
            return Verdict(True, 1.0)
        return Verdict(False, 0.0, "not_found" if self.begun else "no_guess")


class Hunt(MultiTurnEnvironment):
    """Hunts for a number from 1 to 2, 4, 8, ... The hint after a guess is its distance or direction, by stratum."""

    bits = Knob(name="bits", meaning="the binary logarithm of the largest number", low=1, high=8, reach=1, whole=True)
    edge = Knob(name="edge", meaning="the share of hunts for the first or the last number", trait=True)
    space = DesignSpace(("distance", "way"), (bits, edge), failures=("no_guess", "not_found"))

    def make(self, cell, rng):
        most, guesses = 2 ** cell["bits"], cell["bits"] + 1
        number = rng.choice([1, most]) if cell["edge"] else rng.randint(1, most)
        told = "how far away it is" if cell.stratum == "distance" else "whether it is higher or lower"
        prompt = f"Find a number from 1 to {most} with at most {guesses} guesses. After each guess you are told {told}."
        return Problem(prompt, data={"number": number, "guesses": guesses}, key=f"{cell} {number}")

    def make_episode(self):
        return Hunting()
