"""One file a hook point. Each has `attach(recorder) -> Detach`: putting back the very objects that
were there, or saying which of them somebody has patched over since."""

from collections.abc import Callable

Detach = Callable[[], tuple[str, ...]]
"""Undo a hook; returns the names it had to leave because another patch lies on top of ours."""
