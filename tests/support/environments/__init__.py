"""Environments that tests of any space share, and what stands for other people's packages of environments."""
