"""Quantities over time: series that keep every spike, their writer, and step starts."""
