"""Where tasks come from."""
