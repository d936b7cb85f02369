"""The lake: boards, simulator, exact solver and generator, as pure functions on arrays."""
