"""How a board becomes a prompt and an answer becomes a plan."""
