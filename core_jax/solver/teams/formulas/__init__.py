"""Optimal plans of single hard boards by satisfiability."""
