"""Networks that read the tokens of the codec and compute on the board."""
