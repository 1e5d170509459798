"""Packs OpenAI's published vocabularies into src/turnlog/tokens/data/.

    python scripts/vocabulary.py FOLDER

FOLDER holds `o200k_base.tiktoken` and `cl100k_base.tiktoken` as OpenAI publishes them (MIT licence, under
https://openaipublic.blob.core.windows.net/encodings/). Both are checked against the digests that
`tiktoken_ext/openai_public.py` pins before they are packed, and what was packed is read back.
"""

from __future__ import annotations

import base64
import hashlib
import lzma
import sys
from pathlib import Path

OUT = Path(__file__).parent.parent / "src/turnlog/tokens/data"
PUBLISHED = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "lp": 0, "pb": 0}]


def pieces_of(published: bytes) -> list[bytes]:
    """The pieces of a published file, by rank. Raises ValueError if ranks have gaps."""
    rows = [line.split() for line in published.splitlines() if line]
    if [int(rank) for _, rank in rows] != list(range(len(rows))):
        raise ValueError("ranks are not 0, 1, 2, ...")
    return [base64.b64decode(piece) for piece, _ in rows]


def packed(pieces: list[bytes]) -> bytes:
    """The 256 single bytes in the order of their ranks, then the other pieces, each after a byte 0xFF,
    which is in none of them; compressed."""
    single, longer = pieces[:256], pieces[256:]
    if sorted(single) != [bytes((byte,)) for byte in range(256)] or any(b"\xff" in piece for piece in longer):
        raise ValueError("the pieces are not of the expected kind")
    plain = b"".join(single) + b"".join(b"\xff" + piece for piece in longer)
    return lzma.compress(plain, format=lzma.FORMAT_XZ, check=lzma.CHECK_SHA256, filters=FILTERS)


def unpacked(data: bytes) -> list[bytes]:
    """The pieces back."""
    plain = lzma.decompress(data)
    return [plain[byte : byte + 1] for byte in range(256)] + plain[257:].split(b"\xff")


def main(folder: str) -> None:
    OUT.mkdir(exist_ok=True)
    for name, digest in PUBLISHED.items():
        published = (Path(folder) / f"{name}.tiktoken").read_bytes()
        found = hashlib.sha256(published).hexdigest()
        if found != digest:
            sys.exit(f"{name}: sha256 is {found}, published is {digest}")
        pieces = pieces_of(published)
        data = packed(pieces)
        again = b"".join(base64.b64encode(piece) + b" %d\n" % rank for rank, piece in enumerate(unpacked(data)))
        if again != published:
            sys.exit(f"{name}: does not come back as it was published")
        (OUT / f"{name}.xz").write_bytes(data)
        print(f"{name}: {len(pieces):,} pieces, {len(published):,} bytes packed into {len(data):,}")


if __name__ == "__main__":
    main(sys.argv[1])
