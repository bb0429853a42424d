"""Links to other machines: real ssh servers on loopback, and agents that misbehave."""
