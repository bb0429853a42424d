"""A publisher whose turns a test makes itself, and the one monitor that it answers."""

from gpuwatch.probe.circuit_breaker import CircuitBreaker
from gpuwatch.probe.identity import Identity
from gpuwatch.probe.recorder import Recorder
from gpuwatch.probe.serve import Server
from gpuwatch.probe.state_page import StatePage
from gpuwatch.probe.wire import marks, page
from gpuwatch.tui import messages, requests

STEP = (
    marks.FETCH_ENTER,
    marks.FETCH_LEAVE,
    marks.BACKWARD_ENTER,
    marks.BACKWARD_LEAVE,
    marks.OPTIMIZER_ENTER,
    marks.OPTIMIZER_LEAVE,
)


class OneMonitor:
    """An endpoint with one monitor, which reads everything while it reads."""

    path = "/nowhere/x.sock"
    key = "the key"

    def __init__(self) -> None:
        self.asked: list[tuple[bytes, bytes]] = []
        self.sent: list[bytes] = []
        self.has_newcomer = False
        self.reads = True

    def hold(self) -> None:
        """It is there."""

    def receive(self, most: int) -> list[tuple[bytes, bytes]]:
        asked, self.asked = self.asked, []
        return asked

    @property
    def has_arrived(self) -> bool:
        return bool(self.asked)

    def send(self, peer: bytes, *frame: bytes) -> bool:
        if self.reads:
            self.sent.append(b"".join(frame))
        return self.reads

    def pid_of(self, peer: bytes) -> int:
        return 1

    def subscribe(self, history: bool = True, key: str = key) -> None:
        request = requests.Subscribe(messages.SCHEMA, 1, history, key=key)
        self.asked.append((b"a", messages.encode_message(request)))


def served(recorder: Recorder | None = None) -> tuple[Server, Recorder, OneMonitor]:
    breaker = CircuitBreaker(lambda: None)
    recorder = recorder or Recorder(lambda _: True, breaker.trip)
    identity = Identity("ipc:///nowhere/x.sock", None)
    state_page = StatePage(identity.as_json(page.HELLO_BYTES))
    server, reported = Server(recorder, state_page, breaker, identity), OneMonitor()
    server._endpoint = reported  # type: ignore[assignment]
    return server, recorder, reported


def train(recorder: Recorder, steps: int) -> None:
    for _ in range(steps):
        for kind in STEP:
            newest_ns = recorder.entries[-2] if recorder.entries else 0
            detail = 7 if kind == marks.FETCH_ENTER else marks.NO_DETAIL
            recorder.put(newest_ns + 1000)
            recorder.put(marks.word_of(kind, detail))
