"""What has been read, trained on and written down; no torch."""
