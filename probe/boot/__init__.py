"""The directory that `gpuwatch run` puts first on PYTHONPATH, and how the probe gets in from there.

`sitecustomize.py` is what `site` imports at the start of every Python below; `putting_in.py` is
also what `attach --inject` runs. Both are loaded by their file: nothing here is on `sys.path` for
longer than it takes to start.
"""
