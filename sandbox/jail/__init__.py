"""nsjail, what confines a program, and a session of jobs in it."""
