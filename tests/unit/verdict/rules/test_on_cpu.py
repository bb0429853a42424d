"""Parameters that were left on the CPU beside a net on the GPU."""

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from gpuwatch.tui.settings import HostCopies, NeedlessOperations, StepOperations
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.idle_ledger import idle_ledger
from gpuwatch.tui.verdict.rules.h2d import h2d
from gpuwatch.tui.verdict.rules.launch import launch
from gpuwatch.tui.verdict.rules.on_cpu import (
    beside_gpu,
    beside_unused_gpu,
    on_cpu,
    traced_on_cpu,
)
from gpuwatch.tui.verdict.rules.traced_operations import traced_operations
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.noted import settings
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even, stacks, window

STEP = {"forward_ms": 700, "backward_ms": 1_470, "optimizer_ms": 20}
"""DeepSDF's on an H200: 1.1 GB go to the GPU in each step, and 1.2 GB of gradients come back."""


def codes_on_host(sent_mb: float = 1_190, received_mb: float = 1_090, **known: Any) -> StepWindow:
    """So many MB over the link in a step of 2.19 s."""
    given = {"parameters": 27, "parameter_device": "cuda", "host_parameters": 1, **known}
    return gpu_window(
        even(60, **STEP),
        {**STEP, "lag_ms": 0.04},
        settings=settings(**given),
        activity=activity(
            13.0, pcie_tx_mb_s=sent_mb / 2.19, pcie_rx_mb_s=received_mb / 2.19, sm=12.0
        ),
        stacks=stacks([(0.95, "_engine_run_backward (torch/autograd/graph.py:869)", None)]),
    )


def test_codes_that_were_left_on_the_cpu() -> None:
    """ "Launch, 3.6x by a CUDA graph", of a step that makes an input of 1,048,576 x 259 on the CPU:
    7.2x by taking the codes to the GPU."""
    seen = codes_on_host()
    ledger, found = idle_ledger(seen), on_cpu(seen)
    assert ledger is not None
    assert found is not None
    assert ledger.shares["launch"] == 0.0
    assert ledger.shares["host"] == pytest.approx(0.87, abs=0.12)
    assert found.evidence[0].text == "1 of 27 parameters are on the CPU"
    assert found.evidence[1].text.startswith("1.1 GiB a step come back")
    assert found.forecast is not None
    assert found.forecast.high is None, "at least"
    assert 1.5 < found.forecast.speedup < 2.0
    assert Engine().judge(seen).finding.kind == "host"


@pytest.mark.parametrize(
    "other",
    [
        codes_on_host(host_parameters=0),
        codes_on_host(host_parameters=None),
        codes_on_host(sent_mb=80),
        codes_on_host(sent_mb=1.2, received_mb=1.1),
    ],
    ids=["all on the GPU", "an older probe", "copies alone", "a few numbers"],
)
def test_launches_are_not_the_hosts_where_nothing_crosses(other: StepWindow) -> None:
    assert on_cpu(other) is None
    assert launch(other) is not None


@pytest.mark.parametrize("known", [{"parameter_device": "cpu"}, {"parameters": 1}])
def test_a_table_on_the_cpu_that_is_larger_than_the_net(known: dict[str, Any]) -> None:
    """An embedding with an optimizer of its own, or with the net's: most of the bytes are its."""
    found = on_cpu(codes_on_host(**known))
    assert found is not None
    assert found.share == pytest.approx(0.87, abs=0.12)


def test_a_few_bytes_do_not_explain_a_long_wait() -> None:
    """One temperature that was never moved, and 4 MB of results in a step of 2.2 s: "the step
    computes on the CPU 87 %", of launches."""
    seen = codes_on_host(sent_mb=4.2, received_mb=1.1)
    ledger = idle_ledger(seen)
    assert ledger is not None
    assert on_cpu(seen) is None
    assert ledger.computed < 0.01
    found = launch(seen)
    assert found is not None
    assert (found.share or 0.0) > 0.8
    assert ledger.dry == pytest.approx(found.share, abs=0.02)


def test_a_checkpoint_crosses_too() -> None:
    seen = codes_on_host()
    rows = even(60, checkpoint_ms=5, **STEP)
    assert on_cpu(replace(seen, steps=tuple(rows), all_recent=tuple(rows))) is None


NODE = "split_ps_reuse (train.py:113)"
NODES = FrameShare(0.98, NODE, None, "max_value = point_set.max(dim=0)[0]", "forward")


def tree_on_host(busy: float, *places: FrameShare, **known: Any) -> StepWindow:
    """KD-Net's on an H200: 2,047 nodes a cloud, each of a few tensors on the CPU, in 1.1 s."""
    parts = {"forward_ms": 1_083, "backward_ms": 4, "optimizer_ms": 0.4}
    given = {
        "settings": settings(parameters=46, parameter_device="cuda", host_parameters=0),
        "activity": activity(busy, pcie_tx_mb_s=1.1, pcie_rx_mb_s=1.4, sm=busy / 3),
        "stacks": Stacks(139, places or (NODES,), 0, (), None),
        "run_delay": 0.007,
        **known,
    }
    return gpu_window(even(30, **parts), {**parts, "lag_ms": 0.04}, **given)


def test_what_leaves_the_gpu_too_little_to_do_launches_nothing() -> None:
    """ "Launch 98 %, a CUDA graph", of a tree that is built on the CPU: 41x by NumPy."""
    seen = tree_on_host(0.13)
    ledger, found = idle_ledger(seen), beside_gpu(seen)
    assert ledger is not None
    assert found is not None
    assert ledger.shares["launch"] == pytest.approx(25 * 0.0013, abs=0.03)
    assert found.share == pytest.approx(ledger.shares["host"], abs=0.01)
    assert found.share == pytest.approx(0.94, abs=0.02)
    assert found.evidence[0].text.endswith(": launches would make it ≥ 4%")
    assert found.advice[0].endswith(f": {NODE}")
    assert found.forecast is not None
    assert found.forecast.high is None, "at least"
    assert 4 < found.forecast.speedup < 10
    assert on_cpu(seen) is None
    assert Engine().judge(seen).finding.kind == "host"


@pytest.mark.parametrize("busy", [0.3, 0.6, 1.0])
def test_no_graph_of_the_net_gives_back_what_is_computed_on_the_cpu(busy: float) -> None:
    """Launches may be 8 to 25 % of such a step: a graph gives back no more."""
    found = Engine().judge(tree_on_host(busy)).finding
    assert found.kind == "host"
    assert found.advice[0].startswith("do it in NumPy")


def test_launches_leave_the_gpu_something_to_do() -> None:
    """A net of small kernels: busy for an eleventh of the time that launching takes (H200)."""
    assert beside_gpu(tree_on_host(8.1)) is None
    assert launch(tree_on_host(8.1)) is not None


@pytest.mark.parametrize("run_delay", [0.93, None], ids=["no core", "not known"])
def test_a_thread_without_a_core_launches_slowly(run_delay: float | None) -> None:
    assert beside_gpu(tree_on_host(0.13, run_delay=run_delay)) is None


DISPATCH = FrameShare(0.6, "dispatch (torch/distributed/tensor/_dispatch.py:80)", None)


@pytest.mark.parametrize(
    ("busy", "places"),
    [
        (0.13, [replace(NODES, frame=DISPATCH.frame)]),
        (1.5, [replace(DISPATCH, phase="forward"), replace(NODES, share=0.35)]),
        (0.13, [replace(NODES, line="lengths.append(length[i].item())", phase="synchronisation")]),
        (0.13, [replace(NODES, line="parts.append(part.to(device))")]),
    ],
    ids=["a library's Python", "beside the user's launches", "reads", "copies"],
)
def test_what_else_leaves_a_gpu_idle_is_not_computed(busy: float, places: list[FrameShare]) -> None:
    """A dispatcher in Python, 50 us a kernel; lines that wait for the GPU, or for the link."""
    assert beside_gpu(tree_on_host(busy, *places)) is None


def test_of_several_gpus_each_is_launched_for() -> None:
    """The counters are the mean of eight that take turns."""
    shared = replace(activity(0.5, sm=0.2), devices=8)
    assert beside_gpu(tree_on_host(0.5)) is not None
    assert beside_gpu(tree_on_host(0.5, activity=shared)) is None


def test_nvml_rounds_to_whole_percents() -> None:
    seen = tree_on_host(0.0, activity=activity(0.0, source="utilization", sm=None))
    found, exact = beside_gpu(seen), beside_gpu(tree_on_host(0.0))
    assert found is not None
    assert exact is not None
    assert (exact.share or 0.0) - (found.share or 0.0) == pytest.approx(0.25, abs=0.02)


def test_the_largest_part_of_the_host_is_named() -> None:
    """A logger between the phases is not what was measured within them."""
    log = FrameShare(0.3, "log (train.py:40)", None, "json.dump(row, file)", "other")
    found = beside_gpu(tree_on_host(0.13, log, replace(NODES, share=0.65)))
    assert found is not None
    assert found.advice[0].endswith(NODE)


def on_cpu_alone(step_ms: float, nodes: int | None, net: float = 0.73) -> StepWindow:
    """A step on the CPU, so much of its samples in the net, beside a GPU."""
    layer = FrameShare(
        net, "GraphConvolution.forward (layers.py:27)", None, "output = torch.spmm(adj, support)",
        "forward", samples=round(200 * net), in_net=True,
    )  # fmt: skip
    scored = FrameShare(
        1 - net, "get_roc_score (metrics.py:171)", None, "adj_rec = np.dot(emb, emb.T)", "other",
        samples=round(200 * (1 - net)),
    )  # fmt: skip
    parts = {"forward_ms": 0.83 * step_ms, "backward_ms": 0.16 * step_ms}
    given = {"parameters": 3, "parameter_device": "cpu", "host_parameters": 3}
    return window(
        even(60, **parts, optimizer_ms=0.01 * step_ms),
        loaders=(),
        gpu_unused=True,
        settings=settings(**given, graph_nodes=nodes),
        stacks=Stacks(200, (layer, scored), 0, (), None),
    )


def test_a_net_on_the_cpu_beside_a_gpu_that_nobody_uses() -> None:
    """A graph's auto-encoder on 16 cores beside an H200: "no loader seen". 5.8x on the GPU."""
    judged = Engine().judge(on_cpu_alone(218.0, 36)).finding
    assert (judged.kind, judged.sub) == ("compute", "unused-gpu")
    assert judged.advice[0].startswith('move it to the GPU: model.to("cuda")')
    assert judged.forecast is not None
    assert judged.forecast.high is None, "at least"
    assert 1.3 < judged.forecast.speedup < 5.8


@pytest.mark.parametrize(("step_ms", "nodes"), [(0.7, 12), (1.5, 17), (218.0, None)])
def test_steps_that_launching_would_take_as_long_for_stay_on_the_cpu(
    step_ms: float, nodes: int | None
) -> None:
    """0.5x on an H200 of two small layers, 1.1x of three; and what nobody counted."""
    assert beside_unused_gpu(on_cpu_alone(step_ms, nodes)) is None


def test_without_a_gpu_nothing_lies_idle() -> None:
    assert beside_unused_gpu(replace(on_cpu_alone(218.0, 36), gpu_unused=False)) is None


def test_calls_that_no_mark_shows_stay_on_the_cpu() -> None:
    """TRPO on 16 cores beside an H200: 28 steps in 16 s, of which marks have a tenth; the rest asks
    a policy of two layers for 3,000 actions, one by one."""
    seen = on_cpu_alone(218.0, 36)
    rows = even(60, forward_ms=18, backward_ms=5, other_ms=195)
    found = beside_unused_gpu(replace(seen, steps=tuple(rows)))
    assert found is not None
    assert found.share == pytest.approx(23 / 218 - 36 * 0.1 / 218, abs=0.01)


def test_only_the_nets_part_is_taken_to_the_gpu() -> None:
    found = beside_unused_gpu(on_cpu_alone(218.0, 36, net=0.3))
    assert found is not None
    assert found.share == pytest.approx(0.3 - 36 * 0.1 / 218, abs=0.01)


RAYS = "get_rays (/home/me/train.py:40)"


def rays_on_host(us: int = 28_000, **known: Any) -> StepWindow:
    """A NeRF's on an H200: rays of all pixels of a picture on the CPU, of which 1,024 are used; the
    GPU is busy for a quarter of the time."""
    parts = {"forward_ms": 34, "backward_ms": 13, "optimizer_ms": 1}
    operations = StepOperations(
        1, 900, 40_000, 46_000, on_host=NeedlessOperations(RAYS, us, us, 60)
    )
    given = {
        "settings": settings(step_operations=operations, host_parameters=0),
        "activity": activity(25.0, sm=20.0),
        "stacks": stacks([(0.6, "render (train.py:80)", None)]),
        "run_delay": 0.0,
        **known,
    }
    return gpu_window(even(60, **parts), {**parts, "lag_ms": 0.04}, **given)


def test_tensors_that_a_step_makes_on_the_cpu() -> None:
    """ "Launch 75 %, a graph", of a step that computes on the CPU for 28 of 48 ms."""
    seen = rays_on_host()
    ledger, found = idle_ledger(seen), traced_on_cpu(seen)
    assert ledger is not None
    assert found is not None
    assert found.share == pytest.approx(28 / 48, abs=0.01)
    assert ledger.shares["host"] == pytest.approx(28 / 48, abs=0.01)
    assert ledger.shares["launch"] == pytest.approx(0.75 - 28 / 48, abs=0.03)
    text = "60 of 900 operations of a traced step are on tensors of the CPU, 28 ms, most in "
    assert found.evidence[0].text == text + "get_rays (train.py:40)"
    assert found.advice[0].endswith(": get_rays (train.py:40)")
    assert found.speedup_is == "estimate"
    assert found.speedup == pytest.approx(1 / (1 - 28 / 48), abs=0.1)
    verdict = Engine().judge(seen).finding
    assert (verdict.kind, verdict.advice[0]) == ("host", found.advice[0])


def test_samples_of_the_traced_function_are_not_other_python() -> None:
    """R-GCN on an H200: negatives drawn in NumPy for 25 % of the time, and edges normalised on the
    CPU, which was taken for the same; sampling on the GPU gave 2.4x."""
    line = "np.random.choice(n, size=m)"
    drawn = FrameShare(0.4, "negatives (train.py:9)", None, phase="other", line=line)
    rays = FrameShare(0.4, "get_rays (train.py:41)", None, phase="forward")
    both = Stacks(200, (drawn, rays), 0, (), None)
    apart = idle_ledger(rays_on_host(stacks=both))
    other = replace(rays, frame="render (train.py:80)")
    same = idle_ledger(rays_on_host(stacks=replace(both, main=(both.main[0], other))))
    assert apart is not None
    assert same is not None
    assert apart.computed == pytest.approx(0.35, abs=0.06)
    assert same.computed < 0.25


def test_a_trace_may_hold_the_steps_of_two_optimizers() -> None:
    """A GAN's without a loader: twice as much of a step that is half as long."""
    seen = rays_on_host().settings
    assert seen is not None
    assert seen.step_operations is not None
    both = structs.replace(seen.step_operations, wall_us=96_000)
    found = traced_on_cpu(rays_on_host(settings=settings(step_operations=both)))
    assert found is not None
    assert found.share == pytest.approx(28 / 96, abs=0.01)


def test_without_a_place_none_is_named() -> None:
    """It is a library's."""
    found = traced_on_cpu(
        rays_on_host(
            settings=settings(
                step_operations=StepOperations(
                    1, 900, 40_000, 46_000, on_host=NeedlessOperations("", 28_000, 28_000, 60)
                )
            )
        )
    )
    assert found is not None
    assert found.evidence[0].text.endswith("CPU, 28 ms")
    assert found.advice[0].endswith("once for all steps")


def test_a_forward_alone_shows_it_too() -> None:
    """A NeRF's backward holds cumprod, and is not traced."""
    alone = StepOperations(1, 600, 0, 0, on_host=NeedlessOperations(RAYS, 28_000, 28_000, 60))
    found = traced_on_cpu(rays_on_host(settings=settings(step_operations=alone)))
    assert found is not None
    assert found.share == pytest.approx(28 / 48, abs=0.01)
    assert traced_operations(rays_on_host(settings=settings(step_operations=alone))) == []


def test_tensors_without_data_are_the_copies() -> None:
    """Noise that is drawn on the CPU and copied: one cause, which the copies name."""
    rays = rays_on_host().settings
    assert rays is not None
    assert rays.step_operations is not None
    copied = HostCopies(4, 90_000_000, 80_000_000, RAYS)
    seen = structs.replace(rays.step_operations, host_copies=copied)
    copying = rays_on_host(
        settings=settings(step_operations=seen), activity=activity(25.0, pcie_rx_mb_s=1_900.0)
    )
    found, ledger = h2d(copying), idle_ledger(copying)
    assert traced_on_cpu(copying) is None
    assert found is not None
    assert ledger is not None
    assert found.share == pytest.approx(ledger.shares["copies"] + ledger.computed, abs=0.01)
    assert found.advice == ("make it on the GPU, with device=...: get_rays (train.py:40)",)


def test_no_more_of_it_counts_than_the_gpu_waits() -> None:
    found = traced_on_cpu(rays_on_host(activity=activity(80.0)))
    assert found is not None
    assert found.share == pytest.approx(0.2, abs=0.01)
    assert found.share_high == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize(
    "other",
    [
        rays_on_host(us=2_000),
        rays_on_host(activity=activity(99.0)),
        rays_on_host(settings=settings()),
    ],
    ids=["hardly any", "busy", "not traced"],
)
def test_what_a_step_makes_on_the_cpu_beside_the_gpus_work(other: StepWindow) -> None:
    assert traced_on_cpu(other) is None
