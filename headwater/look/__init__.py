"""What is to be seen of a run."""
