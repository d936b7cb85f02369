"""Evaluation of whoever answers on a fixed set of boards, kept answer by answer."""
