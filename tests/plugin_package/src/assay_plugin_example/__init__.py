"""One plug-in of each kind, found by Assay through entry points."""
