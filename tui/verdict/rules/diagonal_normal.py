"""On a CPU: a normal distribution of several numbers that do not depend on each other, for which a
full covariance is factorised and systems of equations are solved."""

import re
from dataclasses import replace
from typing import Final

from ..code_places import main_places, share_seen
from ..findings import Evidence, Finding
from ..format import percent
from ..place_names import by_user_function, own_frame, place_name
from ..scoring import of_net
from ..statistics import Share, product
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow

WITHIN: Final = re.compile(
    r"\(torch/distributions/multivariate_normal\.py"
    r"|^_?(PositiveDefinite|LowerCholesky|LowerTriangular|Symmetric|Square)\."
)
"""Frames of the distribution, and of the checks of its matrix."""
SAVES: Final = (0.85, 0.6, 0.95)
"""Of what those take, a distribution of plain normals; the ends are guesses…"""
MOST: Final = 0.8
"""…and so is this, for what the backward takes for them goes too. In a PPO on two cores they were
47 % of the samples, and 2.3x as fast without."""
INSTEAD: Final = "Independent(Normal(mean, std), 1): of a diagonal covariance it is the same"


def diagonal_normal(window: StepWindow) -> Finding | None:
    """By the backward's graph, which keeps the matrices, and by samples."""
    settings = window.settings
    seen = None if settings is None else settings.diagonal_solves
    if seen is None or seen.part < 1.0 or window.gpu_present:
        return None
    places = [one for one in main_places(window) if WITHIN.search(one.frame)]
    held = share_seen(window, places.__contains__)
    share = product(held, Share(*SAVES))
    if not places or share.mean < CONTRIBUTOR:
        return None
    share = replace(share, high=min(MOST, 1.5 * share.high))
    named = by_user_function(one for one in places if own_frame(one))
    where = f": {place_name(named[0])}" if named else ""
    text = f"{percent(held.mean)} of the samples factorise and solve matrices of {seen.size} rows, "
    text += "which are diagonal by the backward's graph"
    headline = (
        f"a normal distribution with a full covariance takes {percent(share.mean)} of each step"
    )
    evidence = Evidence(text, "py-spy", held.mean)
    return of_net("diagonal-normal", share, headline, (evidence,), (INSTEAD + where,))
