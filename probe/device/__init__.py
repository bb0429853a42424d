"""Marks on the device: timing events beside the host's marks, and what they cost.

Everything that touches the device runs on the training thread, inside its own hooks
(`Stamper.stamp`); a query from any other thread would break a CUDA-graph capture of the user's.
The publisher's thread only grants how many steps may be stamped (`RateLimiter`). The training
thread itself loads this package, at its first mark after the program has begun to use a device.
"""
