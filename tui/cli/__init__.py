"""The command `gpuwatch`: one module a command, and what they share.

Modules here import what a command needs inside the function that needs it, so that
`gpuwatch --help` is quick and a server needs no screen.
"""
