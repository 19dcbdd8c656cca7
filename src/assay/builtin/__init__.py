"""Our own plug-ins, found by name like anybody's."""
