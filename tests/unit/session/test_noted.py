"""The run's own numbers in the monitor: first NaN, skipped steps, tokens, FLOPs, MFU."""

import math
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from gpuwatch.tui.formats.report import report_lines
from gpuwatch.tui.messages import Noted
from gpuwatch.tui.model.observations import GpusSeen, GpuUse
from gpuwatch.tui.model.peaks import peak_flops_s
from gpuwatch.tui.model.snapshot import StepStats
from gpuwatch.tui.session.events import EventStore
from gpuwatch.tui.session.noted import NotedStore, not_finite_note, precision_of
from gpuwatch.tui.settings import Settings
from gpuwatch.tui.wording.throughput import numerics_words, short_words, throughput_words
from tests.unit.compare.runs import of_times
from tests.unit.faces.pictures import GPU, STEPS, picture
from tests.unit.session.making import S

STEP_MS = 10.0
RUN = of_times([STEP_MS] * 400)
END = 5 * S


def at(step: int) -> int:
    """In the middle of a step."""
    return round((step - 0.5) * STEP_MS * 1e6)


def norm(step: int, why: str = "") -> Noted:
    return Noted(at(step), "norm", "", 0.0 if why else 1.0, why)


@pytest.fixture
def store() -> NotedStore:
    return NotedStore(EventStore())


def stats(steps_s: float = 100.0) -> StepStats:
    return replace(STEPS, steps_s=steps_s, samples_s=3200.0)


def test_the_first_number_that_is_not_finite_is_named_with_its_step() -> None:
    events = EventStore()
    store = NotedStore(events)
    notes = [norm(296), norm(298), norm(300, "nan"), norm(302, "nan")]
    store.delivered(notes, RUN.steps, END)
    found = store.numerics()
    assert found is not None
    assert found.not_finite is not None
    assert (found.not_finite.name, found.not_finite.what) == ("gradient norm", "NaN")
    assert (found.not_finite.step, found.not_finite.every) == (300, 2)
    (event,) = events.newest()
    assert (event.step, event.kind) == (300, "numerics")
    assert "step 298 was the last one looked at before" in event.text
    note = not_finite_note(found, 302, None)
    assert note is not None
    assert note.urgent
    assert "NaN since step 300" in note.text
    assert numerics_words(found)[0] == "gradient norm is NaN since step 300, after step 298"


def test_a_number_that_is_finite_again_stops_no_run_and_hides_no_later_one() -> None:
    events = EventStore()
    store = NotedStore(events)
    logged = [(100, "acc", "nan"), (101, "acc", ""), (200, "loss", "nan")]
    notes = [Noted(at(step), "log", name, 0.5 * (not why), why) for step, name, why in logged]
    texts = []
    for count in (1, 2, 3):
        store.delivered(notes[count - 1 : count], RUN.steps if count == 1 else (), END)
        found = store.numerics()
        assert found is not None
        note = not_finite_note(found, 400, None)
        assert note is not None
        texts.append((note.text, note.urgent))
    assert texts == [
        ("acc is NaN since step 100: stop the run or go back", True),
        ("acc was NaN at step 100 and is finite again", False),
        ("loss is NaN since step 200: stop the run or go back", True),
    ]
    assert [event.text for event in events.newest()] == [
        "acc is NaN for the first time",
        "loss is NaN for the first time",
    ]


def test_a_scaler_on_its_way_stops_no_run_and_one_that_finds_no_scale_does() -> None:
    events = EventStore()
    store = NotedStore(events)
    scaled, plain = Settings(scaler=True), Settings(scaler=False)
    store.delivered([norm(100, "inf")], RUN.steps, END)
    found = store.numerics()
    assert found is not None
    assert not_finite_note(found, 110, scaled) is None
    lasts, outright = not_finite_note(found, 140, scaled), not_finite_note(found, 110, plain)
    assert lasts is not None
    assert lasts == outright
    assert lasts.urgent
    store.delivered([norm(104), norm(300, "inf"), norm(302)], (), END)
    found = store.numerics()
    assert found is not None
    assert not_finite_note(found, 400, scaled) is None
    assert len(events.newest()) == 1


def test_a_norm_between_two_looks_that_is_read_late_is_the_first_nan() -> None:
    """The probe asks for the norms between two looks once the second is NaN."""
    events = EventStore()
    store = NotedStore(events)
    store.delivered([norm(288), norm(296), norm(304, "nan")], RUN.steps, END)
    late = [norm(step) for step in (297, 298, 299)] + [norm(300, "nan"), norm(301, "nan")]
    store.delivered(late, [], END)
    found = store.numerics()
    assert found is not None
    assert found.not_finite is not None
    assert (found.not_finite.step, found.not_finite.every) == (300, 1)
    assert (found.figures[0].value, found.figures[0].step) == (None, 304)
    assert [event.step for event in events.newest()].count(300) == 1
    assert numerics_words(found)[0] == "gradient norm is NaN since step 300"


def test_norms_that_come_out_of_order_in_one_message_are_one_event() -> None:
    events = EventStore()
    store = NotedStore(events)
    notes = [norm(296), norm(304, "nan"), norm(299), norm(300, "nan"), norm(301, "nan")]
    store.delivered(notes, RUN.steps, END)
    found = store.numerics()
    assert found is not None
    assert found.not_finite is not None
    assert (found.not_finite.step, found.not_finite.every) == (300, 1)
    (event,) = events.newest()
    assert event.text == "gradient norm is NaN for the first time"


def test_a_number_of_a_step_that_is_not_over_is_the_next_steps(store: NotedStore) -> None:
    store.delivered([norm(401, "inf")], RUN.steps, END)
    found = store.numerics()
    assert found is not None
    assert found.not_finite is not None
    assert (found.not_finite.step, found.not_finite.what) == (401, "inf")


def test_steps_skipped_in_a_row_are_an_event_only_when_many() -> None:
    events = EventStore()
    store = NotedStore(events)
    counts = (1, 2, 0, 1, 2, 3, 4, 5, 6, 7, 8)
    notes = [Noted(at(n), "skipped", "", float(count)) for n, count in enumerate(counts, 1)]
    store.delivered(notes, RUN.steps, END)
    assert [event.text.split()[3] for event in events.newest()] == ["4", "8"]
    found = store.numerics()
    assert found is not None
    assert numerics_words(found) == ["GradScaler has skipped the last 8 steps"]
    store.delivered(notes, (), END)
    assert len(events.newest()) == 2, "a probe sends all anew to a monitor that was away"


def test_tokens_are_counted_where_the_run_reports_them_and_else_inferred(store: NotedStore) -> None:
    store.delivered([Noted(at(1), "tokens", "", 512.0)], RUN.steps, END)
    inferred = store.throughput(stats(), None)
    assert inferred is not None
    assert (inferred.tokens_s, inferred.tokens_inferred) == (3200.0 * 512, True)
    totals = [Noted(second * S, "total", "tokens", 1000.0 * second) for second in range(1, 6)]
    store.delivered(totals, (), END)
    counted = store.throughput(stats(), None)
    assert counted is not None
    assert (counted.tokens_s, counted.tokens_inferred) == (1000.0, False)


def test_what_a_step_is_given_does_not_depend_on_how_long_others_took(store: NotedStore) -> None:
    """1e9 FLOPs in each step were shown as 2.2e9, and 1,000 tokens as well, once steps took longer:
    the totals were those of a minute, the pace that of the window."""
    steps = of_times([10.0] * 300 + [40.0] * 100).steps
    names = {"tokens": 1000.0, "flops": 1e9}
    totals = [
        Noted(step.start_ns + 1, "total", name, each * step.number)
        for step in steps[::4]
        for name, each in names.items()
    ]
    store.delivered(totals, steps, 7 * S)
    slow = replace(stats(25.0), window_s=4.0)
    for seen, steps_s in ((slow, 25.0), (replace(stats(100.0), window_s=0.1), 100.0)):
        found = store.throughput(seen, None)
        assert found is not None
        assert found.flops_given
        assert found.flops_step == pytest.approx(1e9)
        assert found.tokens_s == pytest.approx(1000.0 * steps_s)
        assert found.flops_s == pytest.approx(1e9 * steps_s)
    other = [Noted(step.start_ns + 2, "total", "samples", 32.0 * (step.number - 300) + 64 * 300)
             for step in steps[300:]]  # fmt: skip
    before = [Noted(step.start_ns + 2, "total", "samples", 64.0 * step.number)
              for step in steps[:300]]  # fmt: skip
    store.delivered([*before, *other], (), 7 * S)
    found = store.throughput(slow, None)
    assert found is not None
    assert found.samples_s == pytest.approx(32.0 * 25), "those of the window's steps"


def test_mfu_is_flops_by_the_dense_peak_of_the_type_in_use(store: NotedStore) -> None:
    store.delivered([Noted(at(1), "flops", "counted", 4.945e12)], RUN.steps, END)
    for second in range(5):
        gpus = (gpu_of(1000.0 + 700.0 * second),)
        store.gpus(GpusSeen(t_ns=second * S, gpus=gpus))
    found = store.throughput(stats(), Settings(autocast="bfloat16"))
    assert found is not None
    assert found.flops_s == pytest.approx(4.945e14)
    assert found.mfu == pytest.approx(0.5)
    assert found.samples_joule == pytest.approx(3200 / 700)
    words = "\n".join(throughput_words(found))
    assert "MFU 50.0% of 989 TFLOP/s (NVIDIA H200, bfloat16, dense)" in words
    assert "causal mask in full" in words


def gpu_of(energy_j: float) -> GpuUse:
    return msgspec.structs.replace(GPU, name="NVIDIA H200", energy_j=energy_j)


def test_a_line_of_the_screen_has_the_short_of_it(store: NotedStore) -> None:
    notes = [Noted(at(1), "tokens", "", 512.0), Noted(at(2), "log", "loss", 0.3125), norm(3)]
    store.delivered(notes, RUN.steps, END)
    found = short_words(store.throughput(stats(), None), store.numerics())
    assert found == ["~1,638,400 tokens/s", "loss 0.312"]
    assert short_words(None, None) == []


def test_the_step_that_was_slow_for_counting_is_left_out_of_the_rate(store: NotedStore) -> None:
    slow = of_times([10.0] * 50 + [400.0] + [10.0] * 50).steps
    store.delivered([Noted(slow[50].end_ns, "flops", "counted", 1e12)], slow, END)
    found = store.throughput(stats(71.0), None)
    assert found is not None
    assert found.flops_s == pytest.approx(1e14)
    assert found.samples_s == pytest.approx(3200)


def test_convolutions_have_a_type_of_their_own(store: NotedStore) -> None:
    """PyTorch's defaults: cuDNN's in tf32, products of matrices in fp32. A ResNet-50 on an A100 had
    an MFU of 114 % of the fp32 peak."""
    usual = Settings(parameter_dtype="float32", matmul_precision="highest", cudnn_tf32=True)
    device = "NVIDIA A100-SXM4-80GB"
    store.gpus(GpusSeen(t_ns=S, gpus=(msgspec.structs.replace(GPU, name=device),)))
    store.delivered([Noted(at(1), "flops", "counted", 2e11)], RUN.steps, END)

    def found(settings: Settings) -> Any:
        got = store.throughput(stats(), settings)
        assert got is not None
        return None if got.peak_flops_s is None else (got.peak_flops_s / 1e12, got.peak_of)

    assert found(usual) is None, "how many are convolutions is not known"
    assert found(msgspec.structs.replace(usual, filters=0)) == (19.5, f"{device}, float32")
    store.delivered([Noted(at(2), "flops", "convolutions", 2e11)], RUN.steps, END)
    assert found(usual) == (pytest.approx(156.0), f"{device}, tf32")
    store.delivered([Noted(at(3), "flops", "convolutions", 1e11)], RUN.steps, END)
    both = 1 / (0.5 / 19.5 + 0.5 / 156)
    assert found(usual) == (pytest.approx(both), f"{device}, float32 and tf32")
    forbidden = msgspec.structs.replace(usual, cudnn_tf32=False)
    assert found(forbidden) == (19.5, f"{device}, float32")


def test_an_unknown_device_has_no_mfu(store: NotedStore) -> None:
    store.delivered([Noted(at(1), "flops", "counted", 1e12)], RUN.steps, END)
    found = store.throughput(stats(), Settings(autocast="bfloat16"))
    assert found is not None
    assert found.mfu is None
    assert "no MFU" in "\n".join(throughput_words(found))


def test_why_flops_were_not_counted_is_shown(store: NotedStore) -> None:
    store.delivered([Noted(at(1), "refused", "flops", 0.0, "the step is compiled")], RUN.steps, END)
    found = store.throughput(stats(), None)
    assert found is not None
    assert "FLOPs not counted: the step is compiled" in throughput_words(found)


def test_a_note_that_was_made_while_its_message_was_is_taken(store: NotedStore) -> None:
    """Why FLOPs are not counted where commands are off was sent once, and passed over."""
    store.delivered([Noted(END + 90_000, "refused", "flops", 0.0, "off")], RUN.steps, END)
    found = store.throughput(stats(), None)
    assert found is not None
    assert found.why_no_flops == "off"


@pytest.mark.parametrize(
    ("device", "precision", "tflops"),
    [
        ("NVIDIA A100-SXM4-80GB", "bfloat16", 312),
        ("NVIDIA H100 80GB HBM3", "bfloat16", 989),
        ("NVIDIA H100 PCIe", "float16", 756),
        ("NVIDIA H100 NVL", "bfloat16", 835),
        ("NVIDIA H200", "tf32", 494),
        ("NVIDIA H20", "bfloat16", 148),
        ("NVIDIA L40S", "bfloat16", 362),
        ("AMD Instinct MI300X", "bfloat16", 1307),
        ("Tesla V100-SXM2-16GB", "bfloat16", None),
        ("NVIDIA GeForce GTX 1080", "float32", None),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "bfloat16", None),
        ("NVIDIA GeForce RTX 4090 D", "bfloat16", None),
    ],
)
def test_the_table_of_peaks(device: str, precision: str, tflops: float | None) -> None:
    found = peak_flops_s(device, precision)  # type: ignore[arg-type]
    assert found == (None if tflops is None else pytest.approx(tflops * 1e12))


@pytest.mark.parametrize(
    ("settings", "precision"),
    [
        (Settings(autocast="bfloat16", parameter_dtype="float32"), "bfloat16"),
        (Settings(autocast="", parameter_dtype="float32", matmul_precision="highest"), "float32"),
        (Settings(parameter_dtype="float32", matmul_precision="high"), "tf32"),
        (Settings(parameter_dtype="float16"), "float16"),
        (Settings(parameter_dtype="float32"), None),
        (Settings(), None),
        (None, None),
    ],
)
def test_the_type_of_the_products(settings: Settings | None, precision: str | None) -> None:
    assert precision_of(settings) == precision


def test_the_report_has_both(store: NotedStore) -> None:
    tokens = Noted(at(1), "tokens", "", 512.0)
    store.delivered([norm(298), norm(300, "nan"), tokens], RUN.steps, END)
    whole = picture(numerics=store.numerics(), throughput=store.throughput(stats(), None))
    text = "\n".join(report_lines(whole, 100))
    assert "gradient norm is NaN since step 300" in text
    assert "tokens/s (inferred" in text


@pytest.mark.parametrize(
    "note",
    [
        Noted(at(1), "skipped", "", math.nan),
        Noted(at(1), "total", "tokens", math.inf),
        Noted(2**62, "norm", "", 0.0, "nan"),
        Noted(-5, "norm", "", 0.0, "nan"),
        Noted(at(1), "log", "x" * 10_000, 0.0, "nan"),
        Noted(at(1), "a kind of tomorrow", "", 1.0),
        Noted(at(1), "total", "a unit of tomorrow", 1.0),
    ],
)
def test_what_no_probe_notes_is_passed_over(store: NotedStore, note: Noted) -> None:
    store.delivered([note] * 3, RUN.steps, END)
    assert store.numerics() is None
    found = store.throughput(replace(stats(), samples_s=0.0), None)
    assert found is not None
    assert throughput_words(found) == ["0.00 samples/s"]


def test_what_was_not_finite_before_the_first_known_step_has_no_step(store: NotedStore) -> None:
    store.delivered([norm(300, "nan")], RUN.steps[350:], END)
    found = store.numerics()
    assert found is not None
    assert found.not_finite is not None
    assert found.not_finite.before
    note = not_finite_note(found, 400, None)
    assert note is not None
    assert "since before step 351" in note.text
    assert numerics_words(found)[0] == "gradient norm is NaN since before step 351"


def test_a_seventeenth_number_that_breaks_and_recovers_is_over() -> None:
    """Sixteen have a figure; the STOP of another never went away."""
    store = NotedStore(EventStore())
    others = [Noted(at(1), "log", f"metric {number}", 1.0) for number in range(16)]
    loss = [Noted(at(step), "log", "loss", 0.5 * (step != 7), "nan" * (step == 7)) for step in
            range(2, 20)]  # fmt: skip
    store.delivered([*others, *loss], RUN.steps, END)
    found = store.numerics()
    assert found is not None
    assert found.is_over


def test_a_best_loss_that_begins_infinite_is_no_reason_to_stop() -> None:
    store = NotedStore(EventStore())
    begins = Noted(at(1), "log", "best_val_loss", 0.0, "inf")
    store.delivered([begins, Noted(at(1), "log", "loss", 0.5)], RUN.steps, END)
    found = store.numerics()
    assert found is not None
    assert found.not_finite is None
    store.delivered([Noted(at(200), "log", "loss", 0.0, "nan")], (), END)
    found = store.numerics()
    assert found is not None
    assert found.not_finite is not None
    assert found.not_finite.name == "loss"


@pytest.mark.parametrize("every", [500, 1_000])
def test_a_total_that_is_logged_more_seldom_than_steps_are_kept_is_shown(
    store: NotedStore, every: int
) -> None:
    steps = of_times([10.0] * 3_000).steps
    totals = [
        Noted(step.start_ns + 1, "total", "tokens", 1000.0 * step.number) for step in steps[::every]
    ]
    store.delivered(totals, steps[-512:], steps[-1].end_ns)
    found = store.throughput(stats(100.0), None)
    assert found is not None
    assert found.tokens_s == pytest.approx(100_000.0, rel=0.05)
