"""One trial at a time: its metrics with intervals, what they rest on, and what makes them doubtful."""
