"""Every threshold of the verdict, each beside its reason.

"diagnosis N" is section N of the project's diagnosis notes; "simulated" figures come from
tests/unit/verdict (test_hysteresis, test_window_selection, test_growth), which keep them honest.
"""
