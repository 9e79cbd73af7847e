"""Prompts from files that people have."""
