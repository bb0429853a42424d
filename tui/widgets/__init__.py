"""The panels, and the pure arithmetic and texts that they draw."""
