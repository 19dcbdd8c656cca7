"""What our own experiments add to analysis and reports."""
