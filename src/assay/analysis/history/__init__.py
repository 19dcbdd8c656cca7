"""One agent over time: change points, regressions, and what to do about them."""
