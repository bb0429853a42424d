"""Recordings: everything that reached a session, written so that a replay judges the same.

The `tape` holds the last minutes, the `recorder` writes them and goes on, the `reader` reads."""
