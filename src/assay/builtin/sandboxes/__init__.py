"""How programs that nobody trusts are confined."""
