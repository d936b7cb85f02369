"""What people look at: the report of a run, pictures of boards, and proposals side by side."""
