"""Benchmarks of agent components (StateSet Agents): answers, conversations, and each part by itself.

`subject` finds what is measured, an agent or one of its parts. `scales` has the thresholds of the grades. All times of an
execution are taken by the runner or by `subject.time_call`, and percentiles come from many executions.
"""
