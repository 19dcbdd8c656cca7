"""What Python programs and notebooks call: `run`, `compare`, `gate` and `leaderboard`, re-exported by `assay`."""
