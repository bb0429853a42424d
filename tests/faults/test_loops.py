"""Loops that are not one loop at an easy pace: very many short steps, two at once, a notebook."""

import textwrap
from pathlib import Path

import pytest

from gpuwatch.probe.wire import page
from tests.faults.training import TRAIN, bare, resident_bytes
from tests.faults.watching import READS, monitor
from tests.processes.monitored import hello_of, started, subscribed, until, word_of

MOST_GROWTH_BYTES = 16_000_000

SHORT = """
    import hashlib, sys, torch
    import probe; probe.install()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    weight = torch.zeros(4, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1e-5, foreach=False)
    rows = torch.randn(64, 4)

    def go(steps):
        for at in range(steps):
            optimizer.zero_grad()
            (rows[at % 64] * weight).sum().backward()
            optimizer.step()

    go(1_000)
    print("warm", flush=True)
    sys.stdin.readline()
    go(99_000)
    print(hashlib.sha256(weight.detach().numpy().tobytes()).hexdigest(), flush=True)
    sys.stdin.readline()
"""


@pytest.mark.fault
@pytest.mark.xdist_group("machine")
@pytest.mark.parametrize("watched", [True, False])
def test_a_hundred_thousand_steps_of_a_tenth_of_a_millisecond(
    tmp_path: Path, watched: bool
) -> None:
    output = {}
    for switch in ("0", "1"):
        with started(SHORT, tmp_path, GPUWATCH=switch) as run:
            assert run.line() == "warm"
            before = resident_bytes(run.pid)
            if switch == "0":
                run.send()
                output[switch] = run.line()
            else:
                endpoint = hello_of(run.pid).endpoint or ""
                until(Path(endpoint.removeprefix("ipc://")).exists)
                with monitor(READS if watched else "input()", endpoint):
                    run.send()
                    output[switch] = run.line()
                    assert resident_bytes(run.pid) - before < MOST_GROWTH_BYTES
                    counted = until(lambda: settled(run.pid))
                assert abs(counted[0] - 100_000) < 1_000, counted
                assert hello_of(run.pid).fault is None
            run.send()
            assert run.finish() == (0, "", "")
    assert output["0"] == output["1"]


def settled(pid: int) -> "list[int]":
    """The steps that it counts, once they are near the hundred thousand."""
    steps = word_of(pid, page.WORD_STEPS)
    return [steps] if steps > 99_000 else []


@pytest.mark.fault
def test_two_loops_one_after_the_other_and_in_a_thread(tmp_path: Path) -> None:
    script = (
        TRAIN
        + """
    digests = [train(), train()]
    thread = threading.Thread(target=lambda: digests.append(train()))
    thread.start()
    thread.join()
    print(*digests, flush=True)
    sys.stdin.readline()
    """
    )
    with started(script, tmp_path) as run:
        assert run.line() == " ".join([bare()] * 3)
        with subscribed(hello_of(run.pid).endpoint or "") as next_reply:
            assert next_reply() is not None
        run.send()
        assert run.finish() == (0, "", "")


@pytest.mark.fault
def test_two_loops_at_once_and_one_that_trains_beside_the_main_thread(tmp_path: Path) -> None:
    script = (
        TRAIN
        + """
    digests = []
    threads = [threading.Thread(target=lambda: digests.append(train(400))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(*digests, flush=True)
    sys.stdin.readline()
    """
    )
    with started(script, tmp_path) as run:
        assert run.line() == " ".join([bare(400)] * 2)
        until(lambda: word_of(run.pid, page.WORD_STEPS) > 100)
        assert word_of(run.pid, page.WORD_STEPS) <= 401, "one of them is followed, never a mixture"
        assert hello_of(run.pid).fault is None
        run.send()
        assert run.finish() == (0, "", "")


CELLS = (
    TRAIN.replace("import probe; probe.install()", ""),
    "import probe; probe.install()",
    "probe.install()  # the cell is run again, as cells are",
    "print(train())",
    "raise RuntimeError('a cell that fails')",
    "print(train())",
    "print(probe.uninstall(), probe.uninstall())",
    "print(train())",
)


@pytest.mark.fault
def test_in_a_notebook(tmp_path: Path) -> None:
    """A real kernel, as Jupyter starts it; needs nbclient and ipykernel."""
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cells = [nbformat.v4.new_code_cell(textwrap.dedent(cell)) for cell in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    client.NotebookClient(notebook, timeout=120, allow_errors=True, kernel_name="python3").execute(
        cwd=str(tmp_path)
    )
    reported = ["".join(out.get("text", "") for out in cell.outputs).strip() for cell in cells]
    errors = [out.ename for cell in cells for out in cell.outputs if out.output_type == "error"]
    assert reported == ["", "", "", bare(), "", bare(), "() ()", bare()]
    assert errors == ["RuntimeError"]


@pytest.mark.fault
def test_cells_that_are_run_again_and_again_in_one_interpreter(tmp_path: Path) -> None:
    """Without Jupyter: what a cell is to the probe is code in a `__main__` that goes on living."""
    script = f"""
    import sys
    cells = {CELLS!r}
    import textwrap
    for cell in (*cells, *cells[1:4]):
        try:
            exec(compile(textwrap.dedent(cell), "<cell>", "exec"), globals())
        except RuntimeError as error:
            print(error)
    sys.stdin.readline()
    """
    with started(script, tmp_path) as run:
        run.send()
        status, out, err = run.finish()
    assert (status, err) == (0, "")
    output = bare()
    assert out.splitlines() == [output, "a cell that fails", output, "() ()", output, output]
