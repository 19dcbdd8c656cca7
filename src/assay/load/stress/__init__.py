"""An agent under stress: what a scenario is handed, where it breaks, and what its processes use."""
