"""Sandboxes, which confine untrusted programs."""
