"""Prompts to generations."""
