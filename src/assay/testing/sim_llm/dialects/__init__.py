"""One file a protocol that LLM servers speak."""
