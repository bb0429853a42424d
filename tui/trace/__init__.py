"""What a profiler's trace of some steps says: pure, from bytes to a `Profile`."""
