"""The rules: each looks at one window and says one thing, or nothing.

A rule speaks from the share at which a cause is worth saying (policy.CONTRIBUTOR); whether that
makes it the verdict is the engine's business.
"""

from collections.abc import Callable

from tui.verdict.findings import Finding
from tui.verdict.window import Window

Rule = Callable[[Window], Finding | None]
