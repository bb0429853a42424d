"""What samples of the main thread's stack alone tell of a run: no probe, no clock, no I/O."""
