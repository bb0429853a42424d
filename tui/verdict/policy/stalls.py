"""When nothing moves."""

from typing import Final

STALL_S: Final = 10.0
STALL_STEPS: Final = 10.0
"""Nothing for 10 s and 10 times the 95th percentile of a step."""
STALL_KNOWN_STEPS: Final = 5
STALL_FIRST_S: Final = 120.0
"""While fewer steps are known: the first may choose kernels, fetch weights, compile."""
STALL_STARTUP_S: Final = 60.0
"""Workers that import a heavy dataset take tens of seconds to start."""
STALL_NAMED_S: Final = 60.0
"""A phase that the user named is known to be long."""
STALL_CHECKPOINT_S: Final = 300.0
"""Tens of GB to a network disk take minutes."""
STALL_COMPILE_S: Final = 1800.0
"""max-autotune of a large model takes a quarter of an hour and more."""
STALL_LONGEST: Final = 3.0
"""Times the longest that this run has taken for the same thing before."""
