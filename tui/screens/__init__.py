"""The screens: which panels there are and what the keys do. Layout is in gpuwatch.tcss."""
