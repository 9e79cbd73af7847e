"""The program in a model's answer. Pure."""
