"""Notes: settings that cost something, or will, and are not what holds the run back.

Each is a pure function of one window and reports only what was seen in this run. Costs are
measured; a note whose cost was not measured has none.
"""
