"""HTTP/1.1: framing, one client, one server half, and timers.

Nothing is imported here: a load worker needs the framing, and must not load asyncio and ssl for it.
"""
