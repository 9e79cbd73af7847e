"""What a run left behind, as a report."""
