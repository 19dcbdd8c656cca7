"""The reference agent: a service desk that needs no model, with parts that do their work for real, one module each."""
