"""The step: its phases, both clocks, the scope."""
