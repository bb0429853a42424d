"""The rules: each looks at one window and says one thing, or nothing.

A rule speaks from the share at which a cause is worth saying (thresholds.CONTRIBUTOR); whether that
makes it the verdict is the engine's business.
"""

from collections.abc import Callable

from ..findings import Finding
from ..window import Window

Rule = Callable[[Window], Finding | None]
