"""A plain PyTorch loop with an engineer: python docs/examples/torch_loop.py runs/torch_loop.

A small recurrent network learns by REINFORCE to say the largest of some digits; every ten steps the engineer redesigns
the problems, having tried its proposals on the network. Killed and started again, the loop draws the same problems, and
what it had recorded and decided counts once.
"""

import sys
from pathlib import Path

import torch

from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.recorder import OutcomeRecorder
from lakewright.experiments.trainers.source import ProblemSource

LETTERS = "0123456789=."  # the last one ends an answer
GROUP, LONGEST = 8, 2


class Network(torch.nn.Module):
    """The next letter of a text."""

    def __init__(self) -> None:
        super().__init__()
        self.letters = torch.nn.Embedding(len(LETTERS), 32)
        self.memory = torch.nn.GRU(32, 64)
        self.choice = torch.nn.Linear(64, len(LETTERS))

    def answer(self, prompt, count=GROUP):
        """Several answers to a prompt, and the logarithm of the probability of each."""
        text = torch.tensor([LETTERS.index(letter) for letter in prompt])[:, None].expand(-1, count)
        state, answers, chance = None, [""] * count, torch.zeros(count)
        for _ in range(LONGEST):
            seen, state = self.memory(self.letters(text), state)
            letter = torch.distributions.Categorical(logits=self.choice(seen[-1]))
            text = letter.sample()[None]
            going = torch.tensor([not answer.endswith(".") for answer in answers])
            chance = chance + letter.log_prob(text[0]) * going
            answers = [
                answer + LETTERS[place] * bool(on) for answer, place, on in zip(answers, text[0], going, strict=True)
            ]
        return [answer.removesuffix(".") for answer in answers], chance


def roll_out(problems, samples, turn):
    """Groups of answers of the present network, and their tokens. The chance of training stays as it is."""
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(turn)
        answers = [network.answer(problem.prompt, samples)[0] for problem in problems]
    return engineer.environment.groups(problems, answers), sum(len(text) for texts in answers for text in texts)


folder = Path(sys.argv[1])
if not (folder / "design.json").exists():
    largest = Path(__file__).with_name("largest.py")
    EngineerFolder.begin(folder, environment=f"{largest}:Largest", teacher="gain")
engineer, source, recorder = EngineerFolder(folder), ProblemSource(folder), OutcomeRecorder(folder)

torch.manual_seed(0)
network = Network()
optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
for step in range(1, 41):
    loss = torch.zeros(())
    for place, problem in enumerate(source.take(8)):
        answers, chance = network.answer(problem.prompt)
        lengths, group = [len(answer) for answer in answers], f"step {step} place {place}"
        verdicts = recorder.record(problem, answers, tokens=lengths, group=group)
        rewards = torch.tensor([verdict.reward for verdict in verdicts])
        loss = loss - ((rewards - rewards.mean()) * chance).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(step, engineer.next(roll_out, step=step).line)
