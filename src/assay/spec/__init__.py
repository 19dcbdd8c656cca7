"""Text becomes a Spec: every mistake at once, each with file, line and key."""
