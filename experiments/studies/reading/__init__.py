"""Reading tests of language models as engineers, and lessons that teach them to read."""
