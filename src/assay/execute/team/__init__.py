"""Agents of a team at work: each in a process of its own, one after the other or all at once."""
