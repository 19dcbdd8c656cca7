"""Numbers: arrays in, numbers out. `order` is pure Python, so a worker can use it; the rest needs numpy."""
