"""Code that runs inside the jail, as process 1 and as what it forks. Standard library only."""
