"""The load engine: puts many requests to a server at once, or by a timetable, and takes the time of each token.

schedule  when requests are due           request  the bytes that are sent
answer    the bytes that come back        channel  a connection, with the kernel's time of each arrival
worker    a process that does all this    record   what a worker tells, as columns
engine    starts workers, hears them out  tally    what they told, added up
replay    requests of a trace, when due   kept     answers that wait to be scored
"""
