"""Other people's tools: environments of their own, and clients that run in them."""
