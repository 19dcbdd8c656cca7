"""The command line: `main` knows the commands by name and imports only the one that was asked for.

A command reads its options, calls the pipeline, and shows the answer in one of three ways: printed for people, as one JSON
document with --json, or as a page with --format. What it computes is in `pipeline`, what it shows is in `report`; a command that
begins to compute or to format belongs there. Imports stand within functions, because every command would otherwise wait for the
modules of all branches, and `assay --help` for the modules of all commands.
"""
