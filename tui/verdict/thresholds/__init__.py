"""Every threshold of the verdict, each beside its reason.

"diagnosis N" is section N of the project's diagnosis notes; "simulated" figures come from
tests/unit/verdict (test_engine, test_window_selection, test_memory), which keep them honest.
"""
