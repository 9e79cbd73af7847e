"""Rewards to trajectories."""
