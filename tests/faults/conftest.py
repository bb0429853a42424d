"""The heavy cases start many processes: they are given more time than the quick ones."""

import pytest

from tests.processes import monitored

PATIENT_S = 150.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A limit of their own for the cases that `make test` leaves out."""
    for item in items:
        if item.get_closest_marker("fault") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(2 * PATIENT_S))


@pytest.fixture(autouse=True)
def _patient(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("fault"):
        monkeypatch.setattr(monitored, "LIMIT_S", PATIENT_S)
