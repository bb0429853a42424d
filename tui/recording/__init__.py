"""Recordings: everything that reached a session, written so that a replay judges the same.

`tape` holds the last minutes, `recorder` writes them and what follows, `reader` reads a recording."""
