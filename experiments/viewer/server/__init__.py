"""The local server: pages of what lies under some folders, on the loopback address, read-only."""
