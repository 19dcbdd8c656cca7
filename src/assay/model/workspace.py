"""The workspace that every database has, in which commands work unless another one is chosen."""

DEFAULT = "default"
