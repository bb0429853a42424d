"""What can be measured here, what cannot, why, and the command that changes it.

Pure: facts of the surroundings and a snapshot in, checks out. The ids are stable.
"""
