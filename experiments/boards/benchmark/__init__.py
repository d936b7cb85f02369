"""The benchmark: a fixed set of certified boards with their prompts."""
