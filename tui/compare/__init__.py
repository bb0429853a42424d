"""Runs against each other: what changed from one recording to another, and how sure that is."""
