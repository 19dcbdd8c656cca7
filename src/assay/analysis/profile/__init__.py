"""Where an execution's time and tokens went, and what could be saved."""
