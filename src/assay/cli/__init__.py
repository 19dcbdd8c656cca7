"""The command line: `main` knows the commands by name and imports only the one that was asked for."""
