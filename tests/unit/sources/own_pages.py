"""State pages of this process, opened by their endpoint."""

import gc
import os

from gpuwatch.tui.discovery.state_page import OpenPage, pages_of


def opened_at(endpoint: str) -> OpenPage:
    """The one that a test has made. Those of earlier tests are of this process as well, until they
    are collected; none of them stays open."""
    gc.collect()
    pages = pages_of(os.getpid())
    found = next(one for one in pages if one.hello.endpoint == endpoint)
    for one in pages:
        if one is not found:
            one.close()
    return found
