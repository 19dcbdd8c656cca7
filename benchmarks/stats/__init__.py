"""The statistics held against their promises, by simulation with fixed seeds: `make bench-stats`."""
