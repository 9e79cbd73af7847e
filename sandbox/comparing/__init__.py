"""Whether an answer is right: text, output, values. Pure; outside the jail."""
