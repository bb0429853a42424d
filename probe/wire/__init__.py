"""What crosses from the training process to the monitor, and nothing else.

`page` is the layout of the state page (standard library only, so the training thread may use it);
`messages` are the structs on the socket (msgspec, imported on the publisher's thread). The monitor
imports this package and no other part of `probe`.
"""
