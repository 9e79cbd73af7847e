"""How events and bytes get on and off: clients, commits, dead letters, weights, metrics. Imports schemas only."""
