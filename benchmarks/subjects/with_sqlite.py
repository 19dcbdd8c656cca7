"""The least that storing executions can cost: one row each, a commit for every thousand."""

from __future__ import annotations

import sqlite3
import sys
from time import perf_counter_ns

from functions import empty

BATCH = 1_000

connection = sqlite3.connect("executions.db")
connection.execute("PRAGMA journal_mode = WAL")
connection.execute("PRAGMA synchronous = NORMAL")
connection.execute("CREATE TABLE executions (id INTEGER PRIMARY KEY, repetition INTEGER, seconds REAL)")
for repetition in range(int(sys.argv[1])):
    start = perf_counter_ns()
    empty()
    seconds = (perf_counter_ns() - start) * 1e-9
    connection.execute("INSERT INTO executions (repetition, seconds) VALUES (?, ?)", (repetition, seconds))
    if repetition % BATCH == BATCH - 1:
        connection.commit()
connection.commit()
connection.close()
