"""The trainer: reads evidence about the trainee and writes a typed change of the boards to come."""
