"""The viewer: pages of runs and boards, the report of a run, pictures, and proposals side by side."""
