"""What others implement: one Protocol a file, and `lookup`, which finds a member by name."""
