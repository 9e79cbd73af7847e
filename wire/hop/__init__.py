"""A hop: from a record to what follows from it, and the commit behind it."""
