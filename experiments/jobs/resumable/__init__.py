"""Long work that resumes after any kill: claims of folders, parts of files, journals."""
