"""Helpers of the tests, in rooms named for what they hold."""
