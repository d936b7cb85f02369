"""Episodes on certified boards, step by step: what environments of every framework are made of."""
