"""For plug-in authors: what stands in for the real thing, and checks of each plug-in kind."""
