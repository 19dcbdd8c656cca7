"""The experiments that ship with Assay at full size, and what the simulated world promises."""
