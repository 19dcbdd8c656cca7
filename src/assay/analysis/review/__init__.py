"""What people say of results: how far scorers agree with them, and how well Assay does its work."""
