"""Which processes can be watched, and by whom: pids, targets, state pages."""
