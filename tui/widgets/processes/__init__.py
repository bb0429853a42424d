"""Processes, the cores they use, and events."""
