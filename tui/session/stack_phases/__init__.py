"""Phases from samples of the main thread's stack alone: no probe, no clock, no I/O."""
