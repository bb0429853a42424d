"""The loaders of the training process, as they were last told."""

from typing import Final

from probe.wire.messages import Loader

MOST_LOADERS: Final = 32
"""As many as the probe keeps in mind."""


class LoaderBook:
    """The one that changed last is last."""

    def __init__(self) -> None:
        self._loaders: dict[int, Loader] = {}

    def told(self, loader: Loader) -> None:
        """A loader is new, or changed. A script may make new ones for ever: the oldest go."""
        self._loaders.pop(loader.key, None)
        self._loaders[loader.key] = loader
        if len(self._loaders) > MOST_LOADERS:
            del self._loaders[next(iter(self._loaders))]

    def all(self) -> tuple[Loader, ...]:
        """The one that changed last is last."""
        return tuple(self._loaders.values())

    def training(self) -> tuple[Loader, ...]:
        """Newest first, without those of evaluations, unless there are no others."""
        newest_first = tuple(reversed(self._loaders.values()))
        return tuple(one for one in newest_first if not one.evaluation) or newest_first

    def evaluating_pids(self) -> set[int]:
        """Workers of evaluations: idle while the training's are late, they say nothing of those."""
        loaders = self._loaders.values()
        return {pid for loader in loaders if loader.evaluation for pid in loader.worker_pids}
