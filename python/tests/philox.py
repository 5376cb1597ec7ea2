"""Philox 4x32 with ten rounds in numpy, written from the paper (Salmon et al., SC'11), and Abide's numbers of it."""

from __future__ import annotations

from typing import Any

import numpy as np

MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
WEYL = 0x9E3779B9, 0xBB67AE85
LOW = np.uint64(0xFFFFFFFF)


def words(counter: list[Any], key: list[int]) -> list[Any]:
    """Returns the four words of counters, arrays of which there are four, and a key."""
    a, b, c, d = (np.asarray(word, np.uint64) for word in counter)
    for turn in range(10):
        first, second = (np.uint64((own + turn * by) & 0xFFFFFFFF) for own, by in zip(key, WEYL, strict=True))
        left, right = MULTIPLIERS[0] * a, MULTIPLIERS[1] * c
        a, b, c, d = (right >> np.uint64(32)) ^ b ^ first, right & LOW, (left >> np.uint64(32)) ^ d ^ second, left & LOW
    return [a, b, c, d]


def uniform(shape: tuple[int, ...], step: int, stream: int, seed: int, dtype: str, part: int = 0) -> Any:
    """Returns the numbers in [0, 1) of all cells in a step."""
    places = list(np.indices(shape))[::-1]
    places += [np.zeros(shape, np.uint64)] * (3 - len(places))
    drawn = words([*places, np.full(shape, step % 2**24)], [seed, stream | (step // 2**24) << 16])
    if dtype == "float32":
        return ((drawn[part] >> np.uint64(8)).astype(np.float64) / 2**24).astype(np.float32)
    high, low = drawn[2 * part], drawn[2 * part + 1]
    return (((high >> np.uint64(5)) << np.uint64(26)) | (low >> np.uint64(6))).astype(np.float64) / 2**53
