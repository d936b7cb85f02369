"""Evaluation of policies, solvers and servers on a fixed set of boards, saved answer by answer."""
