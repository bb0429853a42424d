"""Quantities over time: series that keep every spike, step starts, and the rhythm of both."""
