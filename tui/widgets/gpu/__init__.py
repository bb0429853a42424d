"""The GPU view, and the ranks."""
