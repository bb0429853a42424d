"""What the text of a program says beside its stacks: loops, evaluations, environments, packing."""
