"""LLM traffic, recorded to a file of JSON lines and answered from it."""
