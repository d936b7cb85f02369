"""A loop of one's own: a policy that is no model, and the engineer. Run it: `python docs/examples/own_loop.py`."""

import json
import random

from addition import Addition

from lakewright.engineer import Engineer


class Pupil:
    """Answers right the more often, the fewer the digits and the terms, and the more it has practised."""

    def __init__(self, skill=0.0):
        self.skill = skill

    def answer(self, problem, rng):
        hardness = problem.cell.stratum + problem.cell.values[0] / 2 + problem.cell.values[1]
        return problem.answer if rng.random() < 1 / (1 + 2 ** (2 * hardness - self.skill)) else "0"

    def learn(self, groups):
        self.skill += sum(4 * group.learnability for group in groups)


def run(rounds, state=None, stop=None):
    """Designs of the rounds, and the state after them. state: to go on from. stop: the round to end before."""
    environment, pupil, designs = Addition(), Pupil(), []
    held_out = environment.draw(environment.space.uniform(), 60, seed=1)
    engineer = Engineer(environment, teacher="gain", held_out=held_out, rounds=rounds)
    first = 0
    if state:
        first, pupil.skill = state["round"], state["skill"]
        engineer.load_state_dict(state["engineer"])
    for number in range(first, rounds if stop is None else stop):
        rng = random.Random(number)
        problems = engineer.draw(32)
        groups = environment.groups(problems, [[pupil.answer(one, rng) for _ in range(8)] for one in problems])
        pupil.learn(groups)
        engineer.observe(groups)
        decision = engineer.redesign(environment.tallies(held_out, [pupil.answer(one, rng) for one in held_out]))
        print(decision.summary())
        designs.append(decision.design)
        first = number + 1
    return designs, {"round": first, "skill": pupil.skill, "engineer": engineer.state_dict()}


if __name__ == "__main__":
    designs, state = run(6)
    print(json.dumps(state["engineer"]["design"]))
