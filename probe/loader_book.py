"""The loaders of a run, as the marks tell of them."""

from probe.loaders import LoaderRow
from probe.wire.messages import Loader


class LoaderBook:
    """Loaders by key, with how often each was iterated and whether it serves evaluation."""

    def __init__(self) -> None:
        self._loaders: dict[int, Loader] = {}
        self._key_of: dict[int, int] = {}

    def iterated(self, iterator: int, row: LoaderRow) -> None:
        """An iterator of a loader is fetched from for the first time."""
        key = row[0]
        before = self._loaders.pop(key, None)
        if len(self._loaders) >= 32:
            self._loaders.pop(next(iter(self._loaders)))
        self._loaders[key] = Loader(
            *row,
            iterations=before.iterations + 1 if before else 1,
            evaluation=before.evaluation if before else False,
        )
        if len(self._key_of) >= 64:
            self._key_of.clear()
        self._key_of[iterator] = key

    def batch_size(self, iterator: int) -> int | None:
        """The configured batch size of an iterator's loader."""
        loader = self._loaders.get(self._key_of.get(iterator, 0))
        return loader.batch_size if loader is not None else None

    def serves(self, iterator: int, evaluation: bool) -> None:
        """An iterator turned out to feed an evaluation, or training."""
        key = self._key_of.get(iterator, 0)
        loader = self._loaders.get(key)
        if loader is not None and loader.evaluation != evaluation:
            fields = {name: getattr(loader, name) for name in Loader.__struct_fields__}
            self._loaders[key] = Loader(**{**fields, "evaluation": evaluation})

    def all(self) -> list[Loader]:
        """Every loader known, the one described longest ago first."""
        return list(self._loaders.values())
