"""Files of a run, and files of prompts."""
