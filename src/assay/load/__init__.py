"""The load engine: sends many requests to a server at once, or on a schedule, and takes the time of each token.

The way of a load through the modules:

options, load_shape, targets, prompts   what people write, checked
build           all of it put together: a `PreparedLoad`
engine          starts worker processes and adds up what they report
worker          a process that sends requests (`schedule`, `request`, `payload`) over connections (`channel`, `tls`) and
                reads answers (`answer`); `agent_worker` does the same for agents that run their own code
worker_report   the chunks in which workers report, and their format
distributed     the same for workers on other machines: orders there, a common start by `clock_offset`, their reports back
generator       what runs on each of these machines
tally           the chunks added up, in slices of time
summary, rates  the figures of the load
capacity        a search for the highest rate that a server sustains, made of many loads
"""
