"""How many steps passed while the hooks rested, told from what steps were like before."""


class Rests:
    """Steps told since the start, with their optimizer leaves and their time."""

    def __init__(self) -> None:
        self.leaves = 0
        """Optimizer leaves in the open step, nested ones too, as a rest counts them."""
        self._passed = 0
        """Steps in all rests."""
        self._leaves = self._steps = self._ns = 0

    def told(self, count: int, took_ns: int) -> None:
        """The open step ended; it was `count` steps."""
        self._leaves += self.leaves
        self._steps += count
        self._ns += took_ns

    def over(self, leaves: int, took_ns: int) -> int:
        """A rest is over: the steps in it, by its optimizer leaves; by the clock where there is no
        optimizer."""
        steps = 0
        if self._leaves:
            steps = leaves * self._steps // self._leaves
        elif self._ns:
            steps = took_ns * self._steps // self._ns
        self._passed += steps
        return steps

    def unseen(self, steps: int, marks: int, by: int) -> int:
        """Steps between the marks of two numbers, after so many steps in all. Only those that marks
        told of say how many marks a step has."""
        return (steps - self._passed) * (by - marks) // marks
