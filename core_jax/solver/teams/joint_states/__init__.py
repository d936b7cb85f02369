"""All joint states of a team: whether its goals can be reached at all, and optima by exhaustive floods."""
