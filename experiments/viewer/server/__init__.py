"""The local server: pages of the items under some folders, on the loopback address, read-only."""
