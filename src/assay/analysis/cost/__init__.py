"""What agents cost, which of them are worth it, and where money can be saved."""
