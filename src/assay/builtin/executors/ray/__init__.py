"""Workers on the nodes of a Ray cluster. Ray is imported in this folder and nowhere else."""
