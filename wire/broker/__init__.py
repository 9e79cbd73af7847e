"""The broker that is started where none is given."""
