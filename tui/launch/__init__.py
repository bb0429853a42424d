"""Starting a program with the probe inside and nothing else changed."""
