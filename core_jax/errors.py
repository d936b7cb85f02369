"""The one exception for bad input: a single line that names the place, the value and the remedy."""


class InputError(ValueError):
    """Something given from outside (config, row, plan, checkpoint, folder) cannot be used; the CLI exits with 2."""


class TooRareError(InputError):
    """Boards that were asked for do not exist, or are too rare among random ones: ask for others, or for fewer."""
