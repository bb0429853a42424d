"""What crosses from the training process to the monitor, and nothing else.

`marks` are the kinds of mark, `page` is the layout of the state page. How the messages on the
socket are decoded is the monitor's (`tui/messages.py`). The monitor imports this package and no
other part of `probe`.
"""
