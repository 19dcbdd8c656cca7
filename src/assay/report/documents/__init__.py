"""What machines read: JSON documents and their schema, CSV, JUnit."""
