"""Recordings: everything that reached a session, written so that a replay judges the same.

`rounding` decides what is kept of an observation, `tape` holds the last minutes, `recorder` writes
a file beside a running session, `reader` reads one. Between them and the bytes (`format`, `writer`)
stand `differences`, what one figure tells about the next, and `chunks`: a second of observations,
every field of theirs one of the `columns`.
"""
