"""`assay load` held against a server whose times are known, and beside other load generators: `make bench-load`."""
