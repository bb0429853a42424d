"""What is done in the training process only when a monitor asks: a profiler's window, the memory's.

Loaded by the training thread when it is first asked for: the publisher imports nothing, and a
process that nobody asks never has it.
"""
