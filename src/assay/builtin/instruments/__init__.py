"""What can watch an execution."""
