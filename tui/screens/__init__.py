"""The screens: which panels there are. Layout and colours are in styles/."""
