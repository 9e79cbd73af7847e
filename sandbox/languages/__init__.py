"""Languages, and the tools that build and run them."""
