"""Readers that are no models: one that reads the rates of a question and answers by them, and others that do not."""

import json
import re

RATE = re.compile(r"^(\S+): (\d+)% of the", re.M)
SHARE = re.compile(r"the share of (the problems|boards):")


class FakeReader:
    """Answers by the rates that a question of the forms `numbers` shows.

    sense: 1 answers as the rule does, -1 the other way round, 0 always the same.
    """

    def __init__(self, sense: int = 1, leaning: float = 0.0) -> None:
        self.sense, self.leaning, self.asked = sense, leaning, 0

    def weigh(self, messages, begun, choices):
        """More of the share where p (1 - p) is above the mean. Of a knob it has only its leaning."""
        self.asked += 1
        content = messages[-1]["content"]
        label, _, asked = content.splitlines()[-1].partition(", ")
        lead = self.leads(content)[label] if SHARE.match(asked) else 0.0
        odds = self.sense * lead + self.leaning
        return [odds if "more" in choice else 0.0 for choice in choices]

    def write(self, messages, schema):
        """The same for each stratum; the knobs stay."""
        self.asked += 1
        answer = {}
        for label, lead in self.leads(messages[-1]["content"]).items():
            first, *others = schema["properties"][name := label.partition("x")[0]]["properties"]
            word = {1: "more", -1: "less", 0: "more"}[self.sense * (1 if lead > 0 else -1)]
            answer[name] = {first: word, **dict.fromkeys(others, "same")}
        return json.dumps(answer)

    @staticmethod
    def leads(content: str) -> dict[str, float]:
        """By label of a stratum, how much more it is worth than the mean."""
        worth = {label: int(rate) * (100 - int(rate)) / 1e4 for label, rate in RATE.findall(content)}
        mean = sum(worth.values()) / len(worth)
        return {label: value - mean + 1e-9 for label, value in worth.items()}
