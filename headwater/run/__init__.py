"""A run: its processes, from start to end."""
