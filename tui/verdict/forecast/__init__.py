"""What removing a cause would give: the window's steps replayed on two clocks without it."""
