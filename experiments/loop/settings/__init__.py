"""The settings of a run: presets, overrides, and the launch of training."""
