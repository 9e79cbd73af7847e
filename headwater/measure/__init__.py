"""Measuring: answers scored, models evaluated."""
