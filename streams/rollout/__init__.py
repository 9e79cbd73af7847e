"""Generations to rollouts."""
