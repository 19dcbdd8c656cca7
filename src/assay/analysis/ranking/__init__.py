"""Many agents: ratings, leaderboards, and who leads."""
