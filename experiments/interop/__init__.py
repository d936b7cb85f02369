"""The lake in other people's tools: their files, their environments, their data sets."""
