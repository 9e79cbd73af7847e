"""Every deciding part on one in-memory log, from a seed: `python -m tests.simulation`."""
