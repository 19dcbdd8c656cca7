"""Two or more sides: whether they are comparable, how far apart they are, and whether that is more than noise."""
