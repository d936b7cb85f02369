"""Episodes on certified boards, step by step, from which environments of every framework are built."""
