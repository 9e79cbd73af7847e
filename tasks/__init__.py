"""Tasks: what a domain is, and where its prompts come from."""
