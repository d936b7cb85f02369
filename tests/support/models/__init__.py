"""Models of a few thousand weights: the policy, and language models."""
