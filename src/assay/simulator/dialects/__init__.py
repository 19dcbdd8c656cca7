"""The server's side of the APIs that LLM servers speak, one module each; `assay.dialects` has the client's side."""
