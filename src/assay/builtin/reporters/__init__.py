"""Reporters for one kind of experiment."""
