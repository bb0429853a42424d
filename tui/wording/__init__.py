"""Numbers and names as people read them: the same on the screen and in every text."""
