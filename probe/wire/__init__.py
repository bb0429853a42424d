"""What crosses from the training process to the monitor, and nothing else.

`page` is the layout of the state page (standard library only, so the training thread may use it);
`messages` and `dump` are the structs on the socket as the monitor decodes them (msgspec: no probe
imports them). The monitor imports this package and no other part of `probe`.
"""
