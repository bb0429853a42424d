"""The one store: what every face reads and what a recording holds.

Observations come in (`Session.ingest`), pictures go out (`Session.snapshot`). Each file here keeps
one part of the picture; `store.py` puts them together under one lock.
"""
