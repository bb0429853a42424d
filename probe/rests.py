"""How many steps passed while the hooks rested, told from what steps were like before."""


class Rests:
    """Steps told since the start, with their optimizer leaves and their time."""

    def __init__(self) -> None:
        self.leaves = 0
        """Optimizer leaves in the open step, nested ones too, as a rest counts them."""
        self._leaves = self._steps = self._ns = 0

    def told(self, count: int, took_ns: int) -> None:
        """The open step ended; it was `count` steps."""
        self._leaves += self.leaves
        self._steps += count
        self._ns += took_ns

    def steps(self, leaves: int, took_ns: int) -> int:
        """Steps in a rest of so many optimizer leaves; by the clock where there is no optimizer."""
        if self._leaves:
            return leaves * self._steps // self._leaves
        return took_ns * self._steps // self._ns if self._ns else 0
