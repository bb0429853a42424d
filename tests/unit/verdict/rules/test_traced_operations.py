"""What a traced step shows to be needless."""

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from gpuwatch.tui.settings import (
    FunctionTime,
    GatheredOperations,
    HostCopies,
    LoopOperations,
    RowProducts,
    Settings,
    SlowTransforms,
    ZeroProducts,
)
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.rules.compute import compute, of_memory
from gpuwatch.tui.verdict.rules.h2d import h2d
from gpuwatch.tui.verdict.rules.needless_products import needless_products
from gpuwatch.tui.verdict.rules.traced_operations import (
    quick_length,
    traced_loop,
    traced_operations,
    unfused,
)
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.traced_places import shown
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even
from tests.unit.verdict.with_traces import (
    NET,
    NET_TIME,
    PLACE,
    SEEN,
    SETTINGS,
    STEP,
    found_in,
    is_expected,
    needless,
    on_cpu,
    on_gpu,
)


def test_its_forecast_is_what_goes() -> None:
    forecast = found_in(on_gpu(repeated=needless(50_000))).forecast
    assert forecast is not None
    assert forecast.low is not None
    assert forecast.high is not None
    assert forecast.low < 1 / (1 - NET * 0.5) < forecast.high


def test_little_of_it_is_no_cause() -> None:
    assert not traced_operations(on_cpu(constant=needless(5_000)))
    assert not traced_operations(on_cpu())


def test_where_a_gpu_waits_for_its_host_what_is_launched_counts() -> None:
    waiting = on_gpu(busy=40.0, lag_ms=0.02, repeated=needless(1_000, host_us=5_000))
    assert found_in(waiting).share == pytest.approx(NET * 0.5 * 0.95)
    assert found_in(waiting).evidence[0].text.endswith("50% of their time on the host")
    assert not traced_operations(on_gpu(repeated=needless(1_000, host_us=5_000)))


EARLY = GatheredOperations("head (/home/me/train.py:7)", 50_000, 0, 3, 262_144, 4_096, 2_048, 256)


def test_layers_on_gathered_rows_count_by_their_time() -> None:
    """A features' pyramid on an H200: 1.3x by arithmetic, 1.87x measured."""
    seen = on_gpu(gathered=EARLY)
    found = found_in(seen)
    assert (found.kind, found.sub) == ("compute", "gathered-rows")
    assert found.share == pytest.approx(NET * 0.5 * 0.85)
    assert found.evidence[0].text.startswith("4,096 of 262,144 rows can differ in a layer of 2,048")
    assert found.advice[0].endswith(": head (train.py:7)")
    assert found_in(on_cpu(gathered=EARLY)).sub == "gathered-rows"


def test_the_next_largest_is_advised_too() -> None:
    """A net of graphs in fp32 was told bf16 alone; its layers on edges gave as much as tf32."""
    seen = on_gpu(gathered=EARLY, repeated=needless(80_000))
    judged = Engine().judge(seen).finding
    assert judged.sub == "repeated"
    assert judged.advice[-1].startswith("layers take 38% of each step for rows that are there")
    assert judged.advice[-1].endswith("upsample what it gives: head (train.py:7)")


def test_what_is_timed_is_not_guessed_from_arithmetic() -> None:
    rows = RowProducts(0.9, 262_144, 4_096, 2_048, 256)
    seen = on_gpu(gathered=EARLY)
    assert seen.settings is not None
    both = replace(seen, settings=structs.replace(seen.settings, gathered_products=rows))
    assert needless_products(both) is None
    small = structs.replace(SEEN, gathered=structs.replace(EARLY, us=2_000))
    little = structs.replace(seen.settings, gathered_products=rows, step_operations=small)
    found = needless_products(replace(seen, settings=little))
    assert found is not None
    assert found.advice[0].endswith(": head (train.py:7)"), "its place is known all the same"
    untimed = structs.replace(seen.settings, gathered_products=rows, step_operations=SEEN)
    assert needless_products(replace(seen, settings=untimed)) is not None


def test_products_with_zeros_are_told_to_be_sparse() -> None:
    zeros = ZeroProducts("graph (/home/me/train.py:7)", 60_000, 100, 2, 400)
    found = found_in(on_gpu(zeros=zeros))
    assert (found.kind, found.sub) == ("compute", "zeros")
    assert found.share == pytest.approx(NET * 0.6 * 0.9)
    assert found.evidence[0].text.startswith("0.04% of a matrix is not zero")
    assert "to_sparse_csr" in found.advice[0]


GRID = FunctionTime(
    *("Net.get_grid (/home/me/fno.py:8)", 57_000, 6_700, 0, 57_000, 0, 0, 6, "cat", 33_000)
)


def test_what_nothing_is_learned_through_is_told_on_a_gpu() -> None:
    """A grid of NumPy in each forward: 57 % of an H200's time (1.6x)."""
    found = found_in(on_gpu(functions=(GRID,)))
    assert (found.kind, found.sub) == ("compute", "unlearned")
    assert found.share == pytest.approx(NET * 0.57 * 0.7)
    waiting = found_in(on_gpu(busy=40.0, lag_ms=0.02, functions=(GRID,)))
    assert waiting.share == pytest.approx(NET * 0.67 * 0.7)
    assert not traced_operations(on_cpu(functions=(GRID,))), "samples show it there"


@pytest.mark.parametrize(
    "change",
    [{"unlearned_us": 30_000}, {"place": "Teacher.forward (/home/me/t.py:1)"}, {"us": 9_000}],
    ids=["learned", "a net", "little"],
)
def test_what_may_be_learned_or_is_a_net_of_its_own_is_not(change: dict[str, Any]) -> None:
    assert not traced_operations(on_gpu(functions=(structs.replace(GRID, **change),)))


DISTANCES = FunctionTime(
    *("distances (/home/me/vq.py:5)", 80_000, 100, 50_000, 0, 78_000, 800, 9, "sub", 9_000)
)


def test_tensors_that_are_made_and_read_once_are_told_not_to_be_made() -> None:
    """All differences of a quantiser: 89 % of an H200's time, and 1 % as one kernel (3.4x)."""
    found = unfused(on_gpu(functions=(DISTANCES, NET_TIME)))
    assert found is not None
    assert (found.kind, found.sub) == ("compute", "unfused")
    assert found.share == pytest.approx(NET * 0.772 * 0.75)
    assert found.advice[0].endswith("@torch.compile on distances (vq.py:5)")


@pytest.mark.parametrize(
    "change", [{"fused_us": 40_000}, {"fusible_us": 15_000}], ids=["a net like others", "little"]
)
def test_pointwise_operations_of_a_plain_net_are_no_cause(change: dict[str, int]) -> None:
    one = structs.replace(DISTANCES, **change)
    assert unfused(on_gpu(functions=(one,))) is None


def test_what_knows_more_of_it_comes_first() -> None:
    """A full covariance that need not be, of 22 % for 24 %: which call makes the tensors."""
    seen = on_gpu(functions=(DISTANCES,), repeated=needless(45_000))
    assert Engine().judge(seen).finding.sub == "repeated"
    seen = on_gpu(functions=(DISTANCES,), repeated=needless(20_000))
    assert Engine().judge(seen).finding.sub == "unfused"


def test_the_backward_of_an_index_that_adds_up_row_after_row() -> None:
    """262,144 points of a table of 5 rows: 92 % of an H200's time (7 to 9x by `F.embedding`)."""
    found = found_in(on_gpu(scattered=needless(92_000)))
    assert (found.kind, found.sub) == ("compute", "scatter")
    assert found.share == pytest.approx(NET * 0.92 * 0.95)
    assert found.advice[0].startswith("F.embedding(index, table)")


LOOP = LoopOperations("loss (/home/me/train.py:9)", 40_000, 7_000, 700, 64)


def test_a_loop_over_parts_is_the_verdict_where_a_gpu_waits_for_its_host() -> None:
    """A contrastive loss in a loop over 64 utterances, on an H200: 3.4x."""
    found = traced_loop(on_gpu(busy=40.0, lag_ms=0.02, loop=LOOP))
    assert found is not None
    assert (found.kind, found.sub) == ("launch", "loop")
    assert found.share == pytest.approx(NET * 0.7 * 0.9 * 63 / 64)
    assert found.advice[0].endswith("instead of a loop: loss (train.py:9)")
    assert traced_loop(on_gpu(loop=LOOP)) is None, "the GPU is the limit"


def test_on_a_cpu_a_loop_of_small_operations_is() -> None:
    found = traced_loop(on_cpu(loop=LOOP))
    assert found is not None
    assert found.share == pytest.approx(NET * 0.7 * 0.8 * 63 / 64)
    large = structs.replace(LOOP, operations=70)
    assert traced_loop(on_cpu(loop=large)) is None
    # Tracing may make all of them longer than the step is: it is the step that counts.
    times = {"us": 1_000_000, "host_us": 1_000_000}
    slowly_traced = structs.replace(LOOP, host_us=700_000, operations=7_000)
    assert traced_loop(on_cpu(**times, loop=slowly_traced)) is not None


def test_a_gpu_that_is_the_limit_names_where_most_of_its_time_goes() -> None:
    found = compute(on_gpu())
    assert found is not None
    assert found.evidence[0].text == (
        "90% of the operations' time in a traced step is at Net.forward (train.py:12), 56% of it mm"
    )
    assert found.advice[0].startswith("Net.forward (train.py:12) takes most of it")


def test_what_fusing_gives_is_forecast_by_the_bytes_of_a_traced_step() -> None:
    busy = activity(99.0, sm=90.0, tensor=2.0, fp32=10.0, dram=70.0)
    step = structs.replace(
        SEEN, functions=(structs.replace(DISTANCES, us=50_000, fused_us=39_000),)
    )
    seen = gpu_window(
        even(60, **STEP),
        {**STEP, "lag_ms": 80.0},
        activity=busy,
        settings=Settings(step_operations=step),
    )
    found = of_memory(seen)
    assert found is not None
    assert found.forecast is not None
    assert found.forecast.high == pytest.approx(1 / (1 - 0.39))
    assert found.share == pytest.approx(0.75 * 0.39)


def copying(copies: HostCopies | None) -> StepWindow:
    waits = FrameShare(0.4, "train (train.py:88)", None, "y = y.to(device)")
    rest = FrameShare(0.6, "forward (model.py:12)", None, "x = self.layer(x)")
    return gpu_window(
        even(60, **STEP),
        STEP,
        activity=activity(55.0),
        stacks=Stacks(200, (waits, rest), 0, (), None),
        settings=Settings(step_operations=structs.replace(SEEN, host_copies=copies)),
    )


def test_what_a_few_small_copies_cannot_take_is_no_copy() -> None:
    """A public training of point clouds: 46 % of the samples at `target.to(device)`, of 64 numbers,
    where it waits for what the GPU had queued."""
    assert h2d(copying(None)) is not None
    assert h2d(copying(HostCopies(2, 400_000, 0, ""))) is None
    assert h2d(copying(HostCopies(900, 400_000, 0, ""))) is not None
    assert h2d(copying(HostCopies(0, 0, 0, ""))) is not None, "the loader makes them"


def test_what_holds_no_data_is_made_on_the_gpu() -> None:
    found = h2d(copying(HostCopies(900, 400_000, 300_000, "Net.forward (/home/me/train.py:5)")))
    assert found is not None
    assert found.advice[0] == "make it on the GPU, with device=...: Net.forward (train.py:5)"


def test_a_place_is_shown_without_its_folders() -> None:
    assert shown(PLACE) == "Net.forward (train.py:12)"
    assert shown("") == ""


def test_products_in_full_precision_beside_others_in_half_are_cast() -> None:
    """1.8x on an H200, where the verdict was "the GPU is the limit": rotary tables in fp32."""
    found = found_in(on_gpu(full_products=needless(60_000)))
    assert found.sub == "partly-full"
    assert found.advice[0].endswith("unless fp32 is meant there: graph (train.py:7)")
    assert is_expected(1.8, found)
    seen = on_gpu(full_products=needless(60_000))
    assert seen.settings is not None
    tf32 = replace(seen, settings=structs.replace(seen.settings, matmul_precision="high"))
    shares = [one.share or 0.0 for one in (found_in(tf32), found)]
    assert shares[0] < shares[1]


def test_transforms_of_an_awkward_length_are_padded() -> None:
    """8,191 is a prime; 1.55x on an H200."""
    slow = SlowTransforms("fft_conv (/home/me/train.py:7)", 55_000, 100, 24, 8_191)
    found = found_in(on_gpu(transforms=slow))
    assert found.sub == "transforms"
    assert found.advice[0].startswith("pad with zeros to 8,192")
    assert is_expected(1.55, found)


@pytest.mark.parametrize(
    ("length", "quick"), [(8_191, 8_192), (131, 135), (8, 8), (11, 12), (1, 1)]
)
def test_a_quick_length_has_small_factors(length: int, quick: int) -> None:
    assert quick_length(length) == quick


@pytest.mark.parametrize("length", [0, -7, 2**63 - 1])
def test_no_length_takes_for_ever(length: int) -> None:
    """A length of 0 did: each factor divides it."""
    assert quick_length(length) >= length


def test_what_deterministic_algorithms_take_is_a_cause() -> None:
    """4.6x on an H200 without them: pictures made larger by indices."""
    by_indices = FunctionTime(
        PLACE, 77_000, 4_000, 60_000, 0, 20_000, 15_000, 400, "_unsafe_index_put", 59_000
    )
    seen = on_gpu(functions=(by_indices,))
    assert seen.settings is not None
    on = replace(seen, settings=structs.replace(seen.settings, deterministic=True))
    found = found_in(on)
    assert found.sub == "deterministic"
    assert "_unsafe_index_put takes 59% of the operations' time" in found.evidence[0].text
    assert is_expected(4.6, found)
    assert not traced_operations(seen), "they are not asked for"
    others = replace(on, settings=structs.replace(SETTINGS, deterministic=True))
    assert not traced_operations(others), "other operations take the time"
    on_host = on_cpu(functions=(by_indices,))
    assert on_host.settings is not None
    given = structs.replace(on_host.settings, deterministic=True)
    assert not traced_operations(replace(on_host, settings=given)), "a CPU does so anyway"


def test_of_an_index_that_is_sorted_only_that_goes() -> None:
    """12 % in one forward that holds 90 % of the step."""
    added = FunctionTime(PLACE, 90_000, 4_000, 60_000, 0, 0, 0, 400, "index_add", 12_000)
    seen = on_gpu(functions=(added,))
    assert seen.settings is not None
    found = found_in(replace(seen, settings=structs.replace(seen.settings, deterministic=True)))
    assert found.share == pytest.approx(NET * 0.12 * 0.95, abs=0.01)
    assert (found.share_high or 1.0) <= NET * 0.12 * 1.01
