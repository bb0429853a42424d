"""Walking a tree of stacks with keys."""

from gpuwatch.tui.widgets.stacks.tree_walk import Spot, Walk, in_sight, matching
from tests.tui.fake_stacks import TREES

TREES_IDLE = TREES.idle.trees


def names(spots: list[Spot]) -> list[str]:
    """Indented as on the screen, "+" for what can be opened."""
    reported = []
    for spot in spots:
        sign = "" if not spot.has_more else "-" if spot.is_open else "+"
        name = spot.branch.frames[-1].partition(" ")[0] if spot.branch else spot.tree.role
        reported.append(f"{'  ' * spot.depth}{sign}{name}")
    return reported


def walked(*keys: str) -> Walk:
    walk = Walk()
    for key in keys:
        spots = walk.spots(TREES_IDLE)
        walk = {
            "down": lambda w, s: w.moved(s, 1),
            "up": lambda w, s: w.moved(s, -1),
            "right": lambda w, s: w.opened(s),
            "left": lambda w, s: w.closed(s),
        }[key](walk, spots)
    return walk


def at(walk: Walk) -> str:
    spots = walk.spots(TREES_IDLE)
    return names([spots[walk.index(spots)]])[0].strip()


def test_what_is_small_is_closed() -> None:
    assert names(Walk().spots(TREES_IDLE))[:7] == [
        "-main",
        "  -main",
        "    -train_epoch",
        "      Condition.wait",
        "    +train_epoch",
        "    +ResNet.forward",
        "    train_epoch",
    ]


def test_the_cursor_begins_at_the_first_branch_and_stays_in_the_tree() -> None:
    assert at(Walk()) == "-main"
    assert Walk().moved(Walk().spots(TREES_IDLE), -9).at == ("main",)
    last = Walk().moved(Walk().spots(TREES_IDLE), 99)
    assert at(last) == "Queue.get"
    assert Walk().moved([], 1) == Walk()


def test_right_goes_in_and_left_goes_out() -> None:
    assert at(walked("right")) == "-train_epoch"
    assert at(walked("right", "right")) == "Condition.wait"
    assert at(walked("right", "right", "right")) == "Condition.wait", "there is no more"
    assert at(walked("right", "right", "left")) == "-train_epoch"
    assert at(walked("right", "right", "left", "left")) == "+train_epoch"
    opened = walked("down", "down", "down", "right")
    assert at(opened) == "-train_epoch"
    assert at(walked("left", "left")) == "-main"
    assert names(walked("left").spots(TREES_IDLE))[:3] == ["-main", "  +main", "-workers"]


def test_the_cursor_goes_to_the_parent_of_a_branch_that_has_disappeared() -> None:
    walk = walked("right", "right")
    assert walk.at[-1].startswith("_BaseDataLoaderIter")
    spots = walk.spots(TREES.busy.trees)
    assert spots[walk.index(spots)].path == walk.at, "it is in that tree too"
    missing = Walk(at=("main", "<module> (train.py:120)", "nowhere (x.py:1)"))
    assert at(missing) == "-main"
    assert Walk(at=("nobody",)).index(spots) == 1


def test_looking_for_a_text_shows_what_has_it_what_leads_there_and_what_follows() -> None:
    spots = Walk(text="RESIZE").spots(TREES_IDLE)
    assert names(spots) == [
        "-workers",
        "  -_worker_loop",
        "    -_MapDatasetFetcher.fetch",
        "      -Photographs.__getitem__",
        "        resize",
    ]
    whole = Walk(text="dataset.py").spots(TREES_IDLE)
    assert sum("__getitem__" in name for name in names(whole)) == 2
    assert Walk(text="nowhere").spots(TREES_IDLE) == []
    assert matching(TREES_IDLE[0].branches, "for images, labels") != ()


def test_rows_scroll_only_as_far_as_the_cursor_asks() -> None:
    assert in_sight(rows=50, at=3, first=0, room=10) == 0
    assert in_sight(rows=50, at=9, first=0, room=10) == 1
    assert in_sight(rows=50, at=8, first=0, room=10) == 0
    assert in_sight(rows=50, at=49, first=0, room=10) == 40
    assert in_sight(rows=50, at=20, first=30, room=10) == 19
    assert in_sight(rows=5, at=4, first=3, room=10) == 0
