"""Rollouts to rewards."""
