"""The lake for TRL's own GRPO trainer: whole plans as answers to prompts, and play step by step by a tool."""
