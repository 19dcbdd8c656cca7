"""The flow: spec → plan → execute → store → analysis → show. Each module is one page of it."""
