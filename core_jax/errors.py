"""The one exception for bad input: a single line that names the place, the value and the remedy."""


class InputError(ValueError):
    """Something given from outside (config, row, plan, checkpoint, folder) cannot be used; the CLI exits with 2."""

    def __init__(self, problem: str) -> None:
        super().__init__(one_line(problem))


class TooRareError(InputError):
    """Boards that were asked for do not exist, or are too rare among random ones: ask for others, or for fewer."""


def one_line(text: str) -> str:
    """Text from outside, such as a name in a file, as a terminal may show it: what is not printable is spelled out."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
