"""The steps of change point detection: a kernel cuts the history, ranks judge the cuts, a ramp explains staircases."""
