"""A store made of the eight methods that a new one has to write, over whatever maps names to bytes: a dict, a dbm file,
a server of keys and values. CONTRIBUTING.md shows it as an example."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, MutableMapping, Sequence

import msgspec

from turnlog.stores.base import BaseStore, Log
from turnlog.stores.blobs import Put

__all__ = ["KeyValueStore"]


class KeyValueStore(BaseStore):
    """Keeps logs as `log KEY`, their records as `row KEY NUMBER`, blobs as `blob NAME` and `put NAME`."""

    def __init__(self, values: MutableMapping[str, bytes]) -> None:
        super().__init__()
        self._values = values

    def _named(self, kind: str) -> list[str]:
        return [name for name in list(self._values) if name.startswith(f"{kind} ")]

    def _logs(self) -> Iterable[Log]:
        return [msgspec.json.decode(self._values[name], type=Log) for name in self._named("log")]

    def _save(self, log: Log, rows: Mapping[int, bytes]) -> None:
        self._values.update({f"row {log.key} {n}": raw for n, raw in rows.items()})
        self._values[f"log {log.key}"] = msgspec.json.encode(log)  # last: rows count once the log says so

    def _rows(self, key: int, first: int, last: int) -> Sequence[bytes]:
        names = (f"row {key} {n}" for n in range(first, last + 1))
        return [self._values[name] for name in names if name in self._values]

    def _cut(self, key: int, after: int) -> None:
        if not after:
            del self._values[f"log {key}"]
        for name in self._named(f"row {key}"):
            if int(name.split()[2]) > after:
                del self._values[name]

    def _save_blob(self, name: str, data: bytes) -> None:
        self._values[f"blob {name}"] = data
        self._values[f"put {name}"] = json.dumps([time.time(), len(data)]).encode()

    def _blob(self, name: str) -> bytes | None:
        return self._values.get(f"blob {name}")

    def _blobs(self) -> Mapping[str, Put]:
        return {name.split()[1]: Put(*json.loads(self._values[name])) for name in self._named("put")}

    def _remove_blobs(self, names: Iterable[str]) -> None:
        for name in names:
            self._values.pop(f"blob {name}", None)
            self._values.pop(f"put {name}", None)
