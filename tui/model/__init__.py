"""What the parts hand to each other: observations, snapshots, stack trees."""
