"""An environment whose judge, on some answers, never returns in Python or in C, ends its process, or raises."""

import json
import os
import re
import time
from fractions import Fraction

from lakewright.engineer import DesignSpace, Environment, JudgeLimit, Problem, Verdict


class Stuck(Environment):
    """Numbers to repeat; an answer may be any fraction."""

    space = DesignSpace(("one",), (), failures=("wrong", "late"))
    judge_limit = JudgeLimit(0.5, "late")

    def make(self, cell, rng):
        """A number of nine digits."""
        number = str(rng.randrange(10**9))
        return Problem(f"{number} again", number, data={"process": os.getpid()})

    def judge(self, problem, answer):
        """Whether a fraction is the number. `process` says which process judges."""
        match answer:
            case "process":
                return Verdict(False, float(os.getpid()), "wrong")
            case "loop":
                while True:
                    time.sleep(0.01)
            case "backtrack":
                re.fullmatch("(a+)+b", "a" * 60)
            case "nest":
                json.loads("[" * 10**6)
            case "memory":
                bytes(1 << 60)
            case "exit":
                os._exit(0)
            case "kill":
                os.kill(os.getpid(), 9)
            case "raise":
                raise ValueError("no\nanswer")
            case "fork":
                os.fork()
            case "print":
                os.system("echo printed")
        try:
            right = Fraction(answer) == int(problem.answer)
        except (ValueError, ZeroDivisionError):
            right = False
        return Verdict(right, float(right), "" if right else "wrong")


class Arguments(Stuck):
    """Made of a text, which `judge` takes for the answer to every problem."""

    def __init__(self, word="x"):
        self.word = word

    def maker(self):
        """Its file and class, and its argument."""
        return (f"{__file__}:Arguments", self.word)

    def judge(self, problem, answer):
        """Whether it is the word."""
        return Verdict(answer == self.word, 0.0, "" if answer == self.word else "wrong")
