"""From groups to a step, its weights and its checkpoint."""
