"""The trainee: reads boards as tokens, answers with plans, and is trained on them."""
