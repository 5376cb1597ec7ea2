"""Fields of fewer bits than the run's type, beside numpy's types and the bits of bfloat16."""

from typing import Any

import numpy as np
import pytest
from conftest import Array

import pyabide as ab


def narrowed(values: Array, precision: str) -> Array:
    """Returns values rounded to a precision, to nearest, ties to even."""
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
        if precision == "f16":
            single = single.astype(np.float16)
    if precision == "bf16":
        bits = single.view(np.uint32)
        bits = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
        single = (bits << np.uint32(16)).view(np.float32)
    return single.astype(values.dtype)


@pytest.mark.parametrize("precision", ["f32", "f16", "bf16"])
def test_values_are_rounded_to_the_fields_precision(backend: str, dtype: Any, precision: str) -> None:
    @ab.program(1, boundary="periodic")
    def spread(u=ab.field(precision=precision), v=ab.field()):  # type: ignore[no-untyped-def]
        yield {"u": 0.75 * u[0] + 0.3 * u[1] * v[0]}
        yield {"v": v[0] - 2.0**-20 * u[-1]}

    # From far below the least normal number of 16 bits to a fourth of the largest.
    random = np.random.default_rng(5)
    u = (random.choice([-1.0, 1.0], 4001) * 10.0 ** random.uniform(-9.0, 4.2, 4001)).astype(dtype)
    v = random.uniform(-1.0, 1.0, 4001).astype(dtype)
    sim = spread.start(u=u, v=v, dtype=dtype, backend=backend)
    u = narrowed(u, precision)
    np.testing.assert_array_equal(sim["u"], u)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(2):
            single = u.astype(np.float32)
            # NumPy's numbers are of their array's type, and so are the formulas'.
            u = narrowed(0.75 * single + 0.3 * np.roll(single, -1) * v, precision)
            v = v - 2.0**-20 * np.roll(u.astype(np.float32), 1)
    sim.run(2)
    np.testing.assert_array_equal(sim["u"], u)
    np.testing.assert_array_equal(sim["v"], v)
    sim["u"] = np.full(4001, 1.0 / 3.0, dtype)
    np.testing.assert_array_equal(sim["u"], narrowed(np.full(4001, 1.0 / 3.0, dtype), precision))


def test_unknown_precisions_are_refused() -> None:
    with pytest.raises(ab.Unknown, match="f8"):

        @ab.program(1)
        def spread(u=ab.field(precision="f8")):  # type: ignore[no-untyped-def]
            yield {"u": u[0]}

        spread.start(shape=(8,))
