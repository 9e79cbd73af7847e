"""Weights as files beside the log."""
