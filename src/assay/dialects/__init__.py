"""The APIs that LLM servers speak, one module each: address, headers, request body, reading of answers, usage.

`plain` is Assay's own. A module says how a client asks and reads; agents, the load generator, serving and cassettes use it. What a
server answers is written in `simulator/dialects`.
"""
