"""On a CPU: distances between all pairs of two sets of vectors that are summed of all their
differences, where products of matrices make no such tensor."""

from dataclasses import replace
from typing import Final

from ..broadcast_distances import by_all_differences
from ..code_places import main_places, share_seen
from ..findings import Evidence, Finding
from ..format import percent
from ..place_names import by_user_function, place_name
from ..scoring import of_net
from ..statistics import Share, product, share_of
from ..step_time import wall_of
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow

SAVES: Final = (0.85, 0.6, 0.99)
"""Of what these lines take in the forward, `torch.cdist` or a product (torch 2.13, one thread; the
tensors before, first in number, second in number, numbers each): 64 x 64 x 64 0.82 and 0.93, 256 x
64 x 16 0.50 and 0.72, 100 x 20 x 1,600 0.94 and 0.98, 1,536 x 256 x 32 and larger 0.98 and 0.99;
of 3 coordinates 0.62 to 0.77 and 0.87 to 0.90 (256, 1,024 and 4,096 points). Of forward and
backward together as much: 0.75 and 0.86, 0.69 and 0.81, 0.92 and 0.94, 0.98 and 0.99; of 3
coordinates 0.25 to 0.60 and 0.54 to 0.73."""
OF_BACKWARD: Final = 2.4
"""Times as long as the forward theirs takes at the most, where a gradient goes through them: what
samples do not show of it."""
CDIST: Final = "torch.cdist(a, b), squared where the squares are needed"
PRODUCT: Final = "a.pow(2).sum(-1, keepdim=True) - 2 * a @ b.mT + b.pow(2).sum(-1)"
EXACT: Final = 'of points that nearly coincide: compute_mode="donot_use_mm_for_euclid_dist"'


def distances(window: StepWindow) -> Finding | None:
    """By samples of their lines. Whether the backward goes through them is not known, so that the
    share is the forward's, and its upper end has theirs as well."""
    if window.gpu_present:
        return None
    places = by_all_differences(main_places(window))
    seen = share_seen(window, places.__contains__)
    forward = product(seen, Share(*SAVES))
    if not places or forward.mean < CONTRIBUTOR:
        return None
    rows = window.steps
    backward = share_of([row.backward_ns for row in rows], [wall_of(row) for row in rows])
    more = min(OF_BACKWARD * forward.high, backward.mean)
    share = replace(forward, high=min(1.0, forward.high + more))
    where = place_name(by_user_function(places)[0])
    text = f"{percent(seen.mean)} of the samples make them, forward alone: each vector of one set "
    text += "less each of another, squared and summed"
    advice = f"{CDIST}, or {PRODUCT}, in {where}: no tensor of all differences is made", EXACT
    headline = f"distances by all differences take {percent(share.mean)} of each step"
    evidence = Evidence(text, "py-spy", seen.mean)
    return of_net("all-differences", share, headline, (evidence,), advice)
