"""An environment of one's own, cell by cell: `marimo edit docs/examples/environment_tutorial.py`, or run by Python.

It defines an environment, checks it, and trains a small network on it in a plain loop while an engineer redesigns the
problems: a minute on two cores. `python docs/examples/environment_tutorial.py -- --rounds 2` trains for less time.
"""

import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="An environment of your own")


@app.cell
def settings():
    import marimo as mo

    from lakewright.engineer import DesignSpace, Engineer, Environment, Knob, Problem, Verdict

    rounds = int(mo.cli_args().get("rounds") or 10)
    return DesignSpace, Engineer, Environment, Knob, Problem, Verdict, mo, rounds


@app.cell
def define(DesignSpace, Environment, Knob, Problem, Verdict, mo):
    class Comparison(Environment):
        """Two numbers such as `381?379=`; the answer is `<`, `=` or `>`. Of close ones the difference is 2 at most."""

        digits = Knob(name="digits", meaning="digits of the numbers", low=1, high=6, step=1, reach=1, whole=True)
        space = DesignSpace(("any", "close"), (digits,), ranked=True, failures=("no_sign", "wrong"))

        def make(self, cell, rng):
            largest = 10 ** cell["digits"] - 1
            left, right = rng.randint(0, largest), rng.randint(0, largest)
            if cell.stratum == "close":
                right = min(largest, max(0, left + rng.randint(-2, 2)))
            sign = "<" if left < right else ">" if left > right else "="
            return Problem(f"{left:0{cell['digits']}}?{right:0{cell['digits']}}=", sign)

        def judge(self, problem, answer):
            if answer not in ("<", "=", ">"):
                return Verdict(False, 0.0, "no_sign")
            return Verdict(True, 1.0) if answer == problem.answer else Verdict(False, 0.0, "wrong")

    environment = Comparison()

    def design_of(digits):
        return environment.space.design({kind: {"share": 0.5, "digits": digits} for kind in environment.space.strata})

    examples = environment.draw(design_of(3), 4, seed=0)
    shown = "\n".join(f"| {one.cell.stratum} | `{one.prompt}` | `{one.answer}` |" for one in examples)
    table = f"| stratum | prompt | answer |\n|---|---|---|\n{shown}"
    mo.md(f"# An environment\n{Comparison.__doc__}\n\nFour problems of the design with three digits:\n\n{table}")
    return design_of, environment, examples


@app.cell
def check(environment, mo):
    from lakewright.engineer.testing import check_environment

    report = check_environment(environment, seconds=2)
    warnings = "\n".join(f"- {one}" for one in report.warnings)
    mo.md(f"# Is it right?\nNo promise is broken. The check warns:\n\n{warnings}")
    return (report,)


@app.cell
def policy():
    import torch

    torch.set_num_threads(1)  # tensors this small are slower on several threads, and far slower on a busy machine

    LETTERS, SIGNS, LONGEST = " 0123456789?=", "<=>", 14

    class Network(torch.nn.Module):
        """The distribution over the signs after a prompt."""

        def __init__(self):
            super().__init__()
            self.letters = torch.nn.Embedding(len(LETTERS), 16)
            self.memory = torch.nn.GRU(16, 64, batch_first=True)
            self.choice = torch.nn.Linear(64, len(SIGNS))

        def forward(self, problems):
            texts = [problem.prompt.rjust(LONGEST) for problem in problems]
            read, _ = self.memory(self.letters(torch.tensor([[LETTERS.index(one) for one in text] for text in texts])))
            return torch.distributions.Categorical(logits=self.choice(read[:, -1]))

        def answer(self, problems):
            return [SIGNS[sign] for sign in self(problems).probs.argmax(-1).tolist()]

    return Network, SIGNS, torch


@app.cell
def loop(Engineer, Network, SIGNS, design_of, environment, rounds, torch):
    held_out = [one for digits in (1, 2, 3, 4) for one in environment.draw(design_of(digits), 60, seed=1)]

    def train(teacher):
        """Trains a network; for each round the engineer's decision, and the valid held-out answers in percent."""
        torch.manual_seed(0)
        network, decisions, valid = Network(), [], []
        optimizer = torch.optim.Adam(network.parameters(), lr=5e-3)
        engineer = Engineer(environment, teacher=teacher, design=design_of(1), held_out=held_out, rounds=rounds)
        for _ in range(rounds):
            for _ in range(40):
                problems = engineer.draw(32)
                distribution = network(problems)
                signs = distribution.sample((8,))  # [answers, problems]
                answers = [[SIGNS[sign] for sign in column] for column in signs.T.tolist()]
                groups = environment.groups(problems, answers)
                engineer.observe(groups)
                rewards = torch.tensor([group.rewards for group in groups], dtype=torch.float32).T
                loss = -((rewards - rewards.mean(0)) * distribution.log_prob(signs)).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            outcomes = environment.tallies(held_out, network.answer(held_out))
            valid.append(100 * sum(tally.valid for tally in outcomes.values()) / len(held_out))
            decisions.append(engineer.redesign(outcomes))
        return decisions, valid

    return (train,)


@app.cell
def redesigns(environment, mo, rounds, train):
    from lakewright.experiments.viewer.charts.heat import heat_map

    decisions, valid = train("difficulty")
    kinds = environment.space.strata
    values = [[decision.design.strata[kind]["digits"] for decision in decisions] for kind in kinds]
    picture = heat_map("Digits after each round", kinds, [f"{n + 1}" for n in range(rounds)], values, top=6)
    story = "\n".join(f"- {decision.summary()}" for decision in decisions)
    mo.vstack([mo.md("# The redesigns"), mo.Html(picture), mo.md(story)])
    return decisions, valid


@app.cell
def compare(mo, rounds, train, valid):
    from lakewright.experiments.viewer.charts.lines import Point, Series, line_chart

    _, unchanged = train("fixed")
    curves = [("difficulty", valid), ("fixed", unchanged)]
    series = [Series(name, [Point(n + 1, one) for n, one in enumerate(line)]) for name, line in curves]
    names = {n + 1: f"{n + 1}" for n in range(rounds)}
    picture_of_both = line_chart("Valid held-out answers", series, x_label="round", y_label="percent", names=names)
    mo.vstack(
        [
            mo.md("# With and without\nOne run of each says little: a study compares teachers on many seeds."),
            mo.Html(picture_of_both),
        ]
    )
    return (unchanged,)


if __name__ == "__main__":
    app.run()
