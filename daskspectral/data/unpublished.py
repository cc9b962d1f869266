"""A zarr store whose root metadata is held back until all else is written: until then nothing loads from it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from typing import Any

from zarr.abc.store import ByteRequest, Store
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype
from zarr.core.sync import sync
from zarr.storage import WrapperStore

ROOT = "zarr.json"


class Unpublished(WrapperStore[Any]):
    """A store whose root metadata are kept in memory, and travel with it to other processes, until `publish`."""

    def __init__(self, store: Store, root: bytes | None = None):
        super().__init__(store)
        self._root = root

    def publish(self) -> None:
        """Write the root metadata: the store appears with all that it holds."""
        assert self._root is not None
        buffer = default_buffer_prototype().buffer.from_bytes(self._root)
        sync(self._store.set(ROOT, buffer))

    def _with_store(self, store: Store) -> Unpublished:
        return Unpublished(store, self._root)

    def __reduce__(self) -> tuple[Any, ...]:
        return Unpublished, (self._store, self._root)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unpublished) and (self._store, self._root) == (other._store, other._root)

    async def get(self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None) -> Buffer | None:
        if key == ROOT:
            return None if self._root is None else prototype.buffer.from_bytes(self._root)
        found: Buffer | None = await self._store.get(key, prototype, byte_range)
        return found

    async def set(self, key: str, value: Buffer) -> None:
        if key == ROOT:
            self._root = value.to_bytes()
        else:
            await self._store.set(key, value)

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        if key != ROOT:
            await self._store.set_if_not_exists(key, value)
        elif self._root is None:
            self._root = value.to_bytes()

    async def exists(self, key: str) -> bool:
        return self._root is not None if key == ROOT else bool(await self._store.exists(key))

    async def delete(self, key: str) -> None:
        if key == ROOT:
            self._root = None
        else:
            await self._store.delete(key)

    async def list(self) -> AsyncIterator[str]:
        if self._root is not None:
            yield ROOT
        async for key in self._store.list():
            yield key

    async def _get_many(
        self, requests: Iterable[tuple[str, BufferPrototype, ByteRequest | None]]
    ) -> AsyncGenerator[tuple[str, Buffer | None], None]:
        for request in requests:
            yield request[0], await self.get(*request)

    async def _set_many(self, values: Iterable[tuple[str, Buffer]]) -> None:
        for key, value in values:
            await self.set(key, value)
