"""The policy: tasks as tokens, models that answer them, and their training."""
