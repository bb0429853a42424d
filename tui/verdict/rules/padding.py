"""Batches of texts that are filled up to one length: the net computes on what is no text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ...steps import Padding
from ..code_places import calls, forward_of_net, main_places, share_held, share_where
from ..findings import Evidence, Finding
from ..forecast.gain import Gain, gain_on_the_host, replayed
from ..forecast.interval import at_least
from ..forecast.measured import host_alone
from ..format import percent, times
from ..place_names import own_frame
from ..scoring import cause, speedup_of
from ..statistics import Share, share_of, without_rows
from ..step_time import wall_of
from ..thresholds.causes import (
    FEW_BATCHES,
    GROUPED_KEEPS,
    GROUPED_KEEPS_OF_FEW,
    LEAST_MASKS,
    NET_NS_A_BYTE,
    NET_NS_A_TENSOR,
    NET_NS_AN_OPERATION,
    TOKENS_GIVE_ON_GPU,
)
from ..thresholds.gpu import LOOP_SHARE, SM_FULL
from ..thresholds.hysteresis import CONTRIBUTOR, ENTER_SHARE
from ..traced_places import traced
from ..window import StepWindow

FULL: Final = 'padding="max_length"'
TRIMS: Final = "pad each batch to its own longest text"
TRIMS_FIRST: Final = 0.5
"""Of what sorting saves: where less of it comes from that alone, texts are sorted at once."""
RECURRENT: Final = re.compile(r"(LSTM|GRU|RNN)\.forward \(torch/nn/modules/rnn\.py")
POSITION_CALL: Final = re.compile(r"\b(conv1d|scaled_dot_product_attention)\(")
AT_EACH: Final = re.compile(
    r"(Linear\.forward \(torch/nn/modules/linear\.py"
    r"|(linear|log_softmax|softmax|cross_entropy|nll_loss|dropout) \(torch/nn/functional\.py)"
)
"""Computed at each position by itself; convolutions, attention and CRFs take several together."""
ATTENDS: Final = re.compile(r"Attention|MultiHead|Transformer|attention")
LEAST_OF_NET: Final = 1 / 3
"""Of a forward's samples, in layers that compute at each position. Only these count: what embeds
the texts, and guesses words, lies beside them in a transformer written by hand (they hold 43 %)."""
BESIDE_TOKENS: Final = 1.4
"""Of a net without masks, so without attention, what shorter batches take over what goes by the
token: 1.3 (three convolutions) and 1.1 (an LSTM both ways) on two cores, 77 of 256 tokens kept;
whole steps 1.4 and 1.2. What each operation costs stays, and each new length is laid out anew."""
NET_HOLDS: Final = (None, "forward", "backward", "synchronisation")
"""Phases of samples that may be the net's time: a wait for the GPU is for its kernels."""
COLLATES: Final = "DataCollatorWithPadding"
PADS: Final = "torch.nn.utils.rnn.pad_sequence"
FEW_LENGTHS: Final = 64
"""On a GPU texts are padded to multiples of this: attention's kernels are planned, and memory is
laid out, for each new length (124 ms a step until all were known, for 44 ms of texts that are all
padded to 512, H200)."""
GROUPS: Final = "batches of texts of about one length: a batch sampler that sorts them by length"
GROUPS_ON_GPU: Final = f"{GROUPS}, padded to a multiple of {FEW_LENGTHS}"
SORTED_BY: Final = (
    "or, if a sampler does so: its lengths are not those of the samples that it numbers (of a part "
    "of a dataset, as random_split makes, they are lengths[part.indices])"
)
PACKS: Final = "or pack texts behind each other up to that length, with attention kept within each"


@dataclass(frozen=True, slots=True)
class Lengths:
    """What the masks of some batches show. Parts of all positions, 0 to 1."""

    batches: int
    padding: Share
    kept: float
    """No padding."""
    to_longest: float
    """What is left where each batch is padded to its own longest text."""
    mean: float
    """Tokens of a text."""
    longest: int
    lengths: tuple[int, int]
    """Positions of the shortest batch and of the longest."""
    by_ids: bool
    """Without masks."""

    @property
    def is_fixed(self) -> bool:
        """All batches have one length, which none of their texts may need."""
        return self.lengths[0] == self.lengths[1]


def lengths_of(seen: Sequence[Padding], multiple: int = 1) -> Lengths | None:
    """None of fewer than `LEAST_MASKS` batches. A batch's own longest text counts up to the next
    `multiple` of positions, and never as more than it has."""
    positions = sum(one.positions for one in seen)
    if len(seen) < LEAST_MASKS or not positions:
        return None
    kept = sum(one.kept for one in seen)
    padded = [one.positions - one.kept for one in seen]
    return Lengths(
        batches=len(seen),
        padding=share_of(padded, [one.positions for one in seen]),
        kept=kept / positions,
        to_longest=sum(one.rows * _padded_to(one, multiple) for one in seen) / positions,
        mean=kept / sum(one.rows for one in seen),
        longest=max(one.longest for one in seen),
        lengths=(min(one.length for one in seen), max(one.length for one in seen)),
        by_ids=any(one.by_ids for one in seen),
    )


def _by_position(window: StepWindow) -> float:
    """Part of the net, by its forward, that is in layers which compute at each position; 0 where
    that is little of it. A recommender's history is embedded by the position, and the mean of
    that is what its net works on: 1.05x for rows without padding.

    Recurrent nets may be given texts that are packed, without what fills them up: what is asked is
    the source of the functions on the way to the net."""
    nets = forward_of_net(window)
    held = share_held(nets)
    if held < ENTER_SHARE or not all(place.unpacked for place in nets):
        return 0.0
    part = share_where(nets, lambda one: one.by_position or calls(one, POSITION_CALL)) / held
    return part if part > LEAST_OF_NET else 0.0


def _attends(window: StepWindow) -> bool:
    """Attention, which goes by the square of the positions, is among what was seen of the net."""
    nets = forward_of_net(window)
    return any(ATTENDS.search(one) for place in nets for one in (place.frame, place.caller or ""))


def _padded_to(one: Padding, multiple: int) -> int:
    return min(one.length, -(-one.longest // multiple) * multiple)


def padding(window: StepWindow) -> Finding | None:
    """Time that forward and backward take for padding, as far as they take it by the token: the
    optimizer, the loader and launches do not. Half of the positions are half of that time or more,
    for attention goes by their square."""
    on_gpu = window.gpu_present
    found = lengths_of(window.padding, FEW_LENGTHS if on_gpu else 1)
    if found is None or found.padding.low < CONTRIBUTOR:
        return None
    part = _by_position(window) if found.by_ids else 1.0
    if not part:
        return _behind_packing(window, found)
    beside = BESIDE_TOKENS if found.by_ids and not _attends(window) else 1.0
    grouped = min(found.to_longest, found.kept * (1.0 + _grouped_keeps(window)))
    share = _share(window, found, min(1.0, grouped * beside), part)
    if share is None or share.mean < CONTRIBUTOR:
        return None
    best = _gain(window, share.mean)
    least = _at_least(window, best)
    groups = GROUPS_ON_GPU if on_gpu else GROUPS
    packs = () if found.by_ids else (PACKS,)
    first, advice = least, [f"{groups}, {times(least)} or more", SORTED_BY, *packs]
    if found.is_fixed and found.to_longest < 1.0 - CONTRIBUTOR:
        how = _how(found, on_gpu)
        trimmed = _share(window, found, min(1.0, found.to_longest * beside), part)
        gone = 0.0 if trimmed is None else trimmed.mean
        if gone >= TRIMS_FIRST * share.mean:
            first = _at_least(window, _gain(window, gone))
            then = f"and then {groups}, {times(least)} or more together"
            advice = [f"{TRIMS}, {times(first)} or more: {how}", then, *packs]
        else:
            both = f"{GROUPS}, {times(least)} or more, each padded to its own longest text"
            advice = [f"{both}: {how}", *packs]
    headline = f"{percent(found.padding.mean)} of the tokens in a batch are padding"
    made = cause("padding", None, share, headline, _evidence(found), tuple(advice), gain=best)
    return replace(made, forecast=at_least(first))


def _behind_packing(window: StepWindow, found: Lengths) -> Finding | None:
    """Of texts that are packed for a recurrent layer, and padded again to the longest of the batch
    before one that computes each position by itself, mostly the scores of a vocabulary. A GPU's
    time is not seen by the layer."""
    nets = forward_of_net(window)
    again = [place for place in nets if place.padded_again and AT_EACH.match(place.frame)]
    if not again or window.gpu_present:
        return None
    kept = found.kept / found.to_longest
    part = share_held(again) / share_held(nets)
    share = _share(window, found, min(1.0, kept * BESIDE_TOKENS), part)
    if share is None or share.mean < CONTRIBUTOR:
        return None
    best = _gain(window, share.mean)
    at = next((one for place in again if (one := own_frame(place))), "")
    advice = (
        f"no scores of padding, {times(best.speedup)} or more: compute {at} on the packed texts, "
        f"packed.data, and the loss on targets that are packed likewise",
        f"or {GROUPS}",
    )
    headline = f"{percent(1.0 - kept)} of what follows the packed layer is padding"
    made = cause("padding", None, share, headline, _evidence(found), advice, gain=best)
    return replace(made, forecast=at_least(best.speedup))


def _grouped_keeps(window: StepWindow) -> float:
    """Padding that stays in batches of texts of about one length, over what is none. Of few batches
    few are sorted at a time."""
    batches = window.loaders[0].batches if window.loaders else None
    return GROUPED_KEEPS_OF_FEW if batches and batches < FEW_BATCHES else GROUPED_KEEPS


def _share(window: StepWindow, found: Lengths, left: float, part: float) -> Share | None:
    """Part of a step that goes where this part of the positions is left, of this part of the net;
    None where no clock knows the net's part of it."""
    spared = part * (1.0 - left)
    if window.gpu_present:
        after = _after_on_gpu(window, 1.0 - spared)
        return None if after is None else without_rows(max(0.0, 1.0 - after))
    net = _net(window)
    known = found.padding
    low, high = (min(1.0, part / max(1e-9, known.mean)) for part in (known.low, known.high))
    return Share(
        net.mean * spared,
        net.low * spared * low,
        min(1.0, net.high * spared * max(1.0, high)),
    )


def _net(window: StepWindow) -> Share:
    """Part of the time in which the net computes by the token. What each operator and each gradient
    costs once does not go with the tokens."""
    settings, once_ns, seen = window.settings, 0.0, traced(window)
    if settings is not None:
        once_ns = NET_NS_A_TENSOR * (settings.parameters or 0)
        once_ns += NET_NS_A_BYTE * (settings.parameter_bytes or 0)
    called_ns = 0.0 if seen is None else NET_NS_AN_OPERATION * seen.operations
    within, parts = _forward_in_net(window), []
    for row in window.steps:
        forward_ns = row.forward_ns if within is not None else min(row.forward_ns, row.backward_ns)
        net_ns = row.backward_ns + (1.0 if within is None else within) * forward_ns
        once = max(once_ns * row.backwards, called_ns * row.count)
        parts.append(max(0, round(net_ns - once)))
    return share_of(parts, [wall_of(row) for row in window.steps])


def _forward_in_net(window: StepWindow) -> float | None:
    """Of that phase, which holds all from a batch to its backward, the part below a call of a
    module. None where samples do not show it: then a forward that takes longer than its backward is
    taken for something else, though dropout makes some so (2.6 times, on a core)."""
    forward = [place for place in main_places(window) if place.phase == "forward"]
    held = share_held(forward)
    if held < ENTER_SHARE:
        return None
    return share_where(forward, lambda place: place.in_net) / held


def _after_on_gpu(window: StepWindow, left: float) -> float | None:
    """A step in which the net's kernels take as much less as they have less to do, as part of what
    it is: no shorter than the host needs to launch them. Kernels that leave multiprocessors empty
    take as long for fewer tokens. A recurrent layer has kernels of its own for each position, and
    the host launches as many."""
    seen = window.activity
    if seen is None or not seen.busy or seen.sm is None:
        return None
    if is_recurrent(window):
        return 1.0 - _recurrent(window) * (1.0 - left)
    known = replayed(window)
    if known is None:
        return None
    filled = min(1.0, seen.sm / seen.busy / SM_FULL)
    host = min(known.with_kernels(0.0), host_alone(window))
    return max(host, known.with_kernels(1.0 - filled * (1.0 - left)))


def _recurrent(window: StepWindow) -> float:
    """Part of a step in such a net, as the host has it. The forward by the marks holds all from a
    batch to its backward: Python that samples see there, or anywhere, is not the net's."""
    places = main_places(window)
    forward = [place for place in places if place.phase == "forward"]
    python = share_where(places, lambda one: one.phase == "other")
    within = share_where(forward, lambda one: one.in_net) / max(1e-9, share_held(forward) + python)
    net = [round(row.forward_ns * within) + row.backward_ns for row in window.steps]
    apart = share_where(places, lambda one: one.phase not in NET_HOLDS)
    return min(share_of(net, [wall_of(row) for row in window.steps]).mean, 1.0 - apart)


def is_recurrent(window: StepWindow) -> bool:
    """Most of the forward, as the host has it, is in layers that go from position to position."""
    forward = [place for place in main_places(window) if place.phase == "forward"]
    layers = share_held([place for place in forward if RECURRENT.match(place.frame)])
    return layers > 0.0 and layers >= LOOP_SHARE * share_held(forward)


def _gain(window: StepWindow, share: float) -> Gain:
    on_host = gain_on_the_host(window, share)
    return Gain(speedup_of(share), "estimate") if on_host is None else on_host


def _at_least(window: StepWindow, gain: Gain) -> float:
    return max(1.0, gain.speedup * (TOKENS_GIVE_ON_GPU if window.gpu_present else 1.0))


def _evidence(found: Lengths) -> tuple[Evidence, ...]:
    share = found.padding
    text = f"{percent(share.mean)} of all positions in {found.batches} batches "
    text += f"({percent(share.low)} to {percent(share.high)})"
    shortest, longest = found.lengths
    until = f"{longest}" if found.is_fixed else f"{shortest} to {longest}"
    lengths = f"texts have {found.mean:.0f} tokens in the mean and {found.longest} at most, "
    lengths += f"batches {until}"
    evidence = (
        Evidence(text, "hook", share.mean),
        Evidence(lengths, "hook", found.mean, "tokens"),
    )
    if not found.by_ids:
        return evidence
    return (
        *evidence,
        Evidence("without a mask: one id fills the rows up, and is nowhere else", "hook"),
    )


def _how(found: Lengths, on_gpu: bool) -> str:
    if found.by_ids:
        few = f" up to a multiple of {FEW_LENGTHS}" if on_gpu else ""
        return (
            f"no fixed length where texts become ids, and {PADS}{few}, in the loader's collate_fn"
        )
    few = f", pad_to_multiple_of={FEW_LENGTHS}" if on_gpu else ""
    return f"no {FULL} where texts become tokens, and {COLLATES}(tokenizer{few}) for batches"
