"""The tests: rooms as in the house, their helpers in `support`."""
