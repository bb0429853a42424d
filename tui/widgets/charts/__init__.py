"""Charts over time: the sawtooth, its columns and cursor, trends and strips."""
