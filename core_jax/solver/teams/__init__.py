"""Three to eight agents: bounded search in compiled code, satisfiability, and proofs that no plan exists."""
