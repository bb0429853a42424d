"""Other machines: an agent beside the run, a link over any command that ends in a shell there.

`frames` and `coding` are the link, `agent` and `backlog` its far side, `line`, `link` and
`provider` the near one. Nothing listens on a network: OpenSSH, kubectl or srun carry the bytes.
"""
