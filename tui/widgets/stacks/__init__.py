"""Stacks as lines, as a tree, and the source around a frame."""
