"""Work that takes long: executors, folders that resume after any kill, and the setup of a process."""
