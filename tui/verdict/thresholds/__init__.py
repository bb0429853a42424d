"""Every threshold of the verdict, each beside its reason.

"simulated" figures come from tests/unit/verdict (test_hysteresis, test_window_selection,
test_growth), which keep them honest.
"""
