"""The redesign after a stage: proposal, guard, trial and rollback."""
