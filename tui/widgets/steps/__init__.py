"""The step: its phases, both clocks in the lens, the scope."""
