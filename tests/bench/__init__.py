"""Figures, never assertions: `make bench`, or `python -m tests.bench [PART …] [--quick]`. See README.md."""
