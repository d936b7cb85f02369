"""Boards as questions in words, with a certified answer and a score: what frameworks of language models ask for."""
