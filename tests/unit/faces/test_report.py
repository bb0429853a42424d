"""The report as golden text."""

import time
from dataclasses import replace

import pytest

from gpuwatch.tui.formats.report import report_lines
from gpuwatch.tui.verdict.findings import Kind
from gpuwatch.tui.verdict.history import Held, VerdictTimeline
from gpuwatch.tui.verdict.window import MemoryPoint
from tests.tui.states import NOTES, a_ledger
from tests.unit.faces.pictures import (
    BY_GPM,
    BY_NVML,
    GPU,
    INPUT,
    STATUS,
    SUMMARY,
    TIMELINE,
    picture,
    young,
)
from tests.unit.session.making import S, loader, verdict

WHOLE = """\
gpuwatch   train.py   pid 48213 · attached 7 min · hooks · cost 0.04% · monitor 4%

INPUT-BOUND   critical · 92% sure · for 6 min · since step 240
  data wait is 57% of every step
    706 of 1,240 ms/step is spent waiting for the loader   [hook]
    4/4 workers busy on CPU; 81% of their samples decode JPEGs   [py-spy]
  NEXT   num_workers 4 → 10 (16 cores, 11 idle)   ≤ 2.5x faster
         decode on the GPU
  ALSO   memory grows: host memory grows 38 MiB/100 steps

steps    18,204 steps · 0.81 steps/s · 25.9 samples/s · p50 1.2 s · p95 1.4 s · max 1.5 s · over 48
         steps, 60 s
phases   data wait 706 ms per step, 57%
         forward 172 ms per step, 14%
         backward 288 ms per step, 23%
         optimizer 46.0 ms per step, 4%
         other 24.8 ms per step, 2%
use      training % mean 43 · peak 86 over the last 1 s · trough 0   [hook, 20 ms]
         no GPU: share of time the training process is not waiting
memory   process 6.1 GiB · workers 900 MiB · 40 GiB of 64 GiB available · +38 MiB per 100 steps ·
         growing   [proc]
loader   Photographs · num_workers 4 · prefetch_factor 2 · batch size 32
stacks   all samples: main 312 · workers 300   [py-spy]
         main 94% _get_data (dataloader.py:1275) ← train.py:88
         workers 81% load (PIL/ImageFile.py:300) ← dataset.py:41
         workers 11% resize (functional.py:468)
         workers idle 2%
events   22:18:20 step 18,000: checkpoint 4.1 s, 2 min ago
         22:18:21 the probe is silent, 2 min ago
missing  nvml: no NVIDIA driver. CPU, data wait and stacks still work"""

YOUNG = """\
gpuwatch   train.py   pid 48213 · attached 0 s · hooks · connecting · monitor 4%

WARMING UP
  0 of 15 steps
"""


def test_everything_is_reported_in_a_hundred_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    assert "\n".join(report_lines(picture(), 100)) == WHOLE


def test_before_anything_is_known_nothing_is_invented() -> None:
    assert "\n".join(report_lines(young(), 80)) == YOUNG


@pytest.mark.parametrize("width", [40, 50, 80, 200])
def test_no_line_is_wider_than_asked(width: int) -> None:
    assert all(len(line) <= width for line in report_lines(picture(), width))


def test_the_end_stands_in_the_first_lines() -> None:
    ended = replace(STATUS, state="ended", ended="exited 2 s ago")
    assert "training exited 2 s ago" in report_lines(picture(status=ended), 100)[0]


def test_every_kind_of_verdict_has_a_word() -> None:
    for kind in ("incomplete", "stalled", "healthy", "checkpoint", "straggler"):
        assert report_lines(picture(verdict=verdict(kind)), 100)[2][:4].isupper()


def test_what_the_gpus_do_and_how_they_are() -> None:
    lines = report_lines(picture(gpus=(GPU,), activity=(BY_GPM,), sawtooth=None), 300)
    (shown,) = [line for line in lines if line.startswith("use")]
    assert shown == (
        "use      GPU 0 NVIDIA H200: SM 34% · tensor 0% · DRAM 17% · PCIe in 5.9 GB/s · "
        "out 70 MB/s · 302 of 700 W · 1,980 MHz · 41 °C · memory clock 3,201 MHz · "
        "clocks limited: too hot · memory 80 GiB of 140 GiB · this process 60 GiB · "
        "another process (pid 991) 20 GiB, uses 3% of the GPU"
    )


def test_without_counters_there_is_how_busy_a_gpu_is() -> None:
    text = "\n".join(report_lines(picture(gpus=(GPU,), activity=(BY_NVML,)), 200))
    assert "busy 42%" in text
    assert "SM" not in text
    assert "tensor" not in text


def test_the_time_of_the_run_is_accounted_for() -> None:
    lines = report_lines(picture(timeline=TIMELINE, summary=SUMMARY), 200)
    first = next(index for index, line in enumerate(lines) if line.startswith("past"))
    assert lines[first : first + 4] == [
        "past     over 7 min: input/workers 75%, healthy 22%, warming-up 3%; time lost: 3 min",
        "         to step 15, 12 s: warming-up",
        "         steps 15 to 4,100, 89 s: healthy",
        "         steps 4,100 to 18,204, 5 min: input/workers, 57% of that time",
    ]


def test_a_run_that_only_warmed_up_has_no_account() -> None:
    whole = (Held("warming-up", None, 1.0, 12 * S, None),)
    lines = report_lines(
        picture(summary=whole, timeline=VerdictTimeline(TIMELINE.verdicts[:1], 0)), 200
    )
    assert not any(line.startswith("past") for line in lines)


def test_what_was_reported_seldom_is_listed_together() -> None:
    kinds: tuple[Kind, ...] = ("input", "host", "sync", "launch", "h2d", "compute", "healthy")
    whole = tuple(Held(kind, None, 1 / 7, S, None) for kind in kinds)
    lines = report_lines(picture(summary=whole), 200)
    assert (
        "past     over 7 s: input 14%, host 14%, sync 14%, launch 14%, h2d 14%, other 29%" in lines
    )


def test_notes_stand_below_what_else_was_found() -> None:
    shown = replace(picture().verdict, notes=(*NOTES, replace(NOTES[0], cost=None)))
    lines = report_lines(picture(verdict=shown), 200)
    first = next(index for index, line in enumerate(lines) if line.startswith("  NOTE"))
    assert lines[first - 1].startswith("  ALSO")
    assert lines[first : first + 3] == [
        "  NOTE   anomaly detection was left on: torch.autograd.set_detect_anomaly(False) "
        "(it slows the backward, 23% of every step)   [hook]",
        "         a GradScaler with bfloat16, which needs none: GradScaler(enabled=False) "
        "(3% of main-thread samples are in it)   [py-spy]",
        "         anomaly detection was left on: torch.autograd.set_detect_anomaly(False)   [hook]",
    ]


def test_what_else_was_found_has_its_evidence_and_advice() -> None:
    also = replace(INPUT, headline="a second cause", advice=("do this", "and that"))
    shown = replace(picture().verdict, contributors=(also,))
    lines = report_lines(picture(verdict=shown), 200)
    first = next(index for index, line in enumerate(lines) if line.startswith("  ALSO"))
    assert lines[first : first + 5] == [
        "  ALSO   input 57%: a second cause",
        f"           {also.evidence[0].text}   [hook]",
        f"           {also.evidence[1].text}   [py-spy]",
        "           → do this   ≤ 2.5x faster",
        "           → and that",
    ]


def test_loaders_that_are_alike_have_one_line() -> None:
    made = [loader(key=key) for key in range(9)] + [loader(key=9, batch_size=64)]
    lines = report_lines(picture(loaders=tuple(made)), 120)
    at = next(i for i, line in enumerate(lines) if line.startswith("loader"))
    reported = "Photographs · num_workers 4 · prefetch_factor 2 · batch size"
    assert lines[at : at + 2] == [f"loader   {reported} 32 · x9", f"         {reported} 64"]
    assert lines[at + 2].startswith("stacks")


def test_memory_is_what_can_not_be_let_go_and_the_resident_is_named() -> None:
    seen = picture()
    memory = replace(seen.memory, host=(MemoryPoint(9, 9 * S, 5 * 1024**3),))
    lines = report_lines(replace(seen, memory=memory), 120)
    assert any("process 5.0 GiB (6.1 GiB RSS with file pages)" in line for line in lines)


def test_a_number_stays_with_its_unit() -> None:
    lines = report_lines(picture(), 60)
    assert not any(line.lstrip().startswith(("ms", "GiB", "MiB")) for line in lines)


def test_where_the_gpus_time_goes_is_a_line_of_the_report() -> None:
    text = " ".join("\n".join(report_lines(picture(ledger=a_ledger()), 100)).split())
    assert "GPU time well used 39% · others' work 3% · waits for data 55%" in text
    assert "GPU time" not in "\n".join(report_lines(picture(), 100))
