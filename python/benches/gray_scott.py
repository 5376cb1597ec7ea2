"""Times Gray–Scott from Python: recorded, as the same stencil in Rust, and as JAX's loop of rolled arrays.

    python gray_scott.py [--backend cuda] [--sizes 512,1024,2048] [--dtypes float32,float64] [--csv FILE]

Medians of five runs of half a second each, in turns; every cell counts once per step. The recorded stencil must
have the bits of the one in Rust, and JAX's fields must be as near as rounding lets them be.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import pyabide as ab

RUNS, SECONDS = 5, 0.5
# Their sum is exact in both types, so that it does not matter in which it is computed.
PARAMETERS = {"du": 0.16, "dv": 0.08, "feed": 0.03125, "kill": 0.0625}


@ab.stencil(2, boundary="periodic")
def gray_scott(u, v, du=0.16, dv=0.08, feed=0.03, kill=0.062):  # type: ignore[no-untyped-def]
    # As Rust's Tap::laplacian does.
    lap = lambda w: ab.fma(w, -4.0, w[-1, 0] + w[0, -1] + w[0, 1] + w[1, 0])  # noqa: E731
    r = u * v**2
    return {"u": u + du * lap(u) - r + feed * (1 - u), "v": v + dv * lap(v) + r - (feed + kill) * v}


def jax_loop() -> Callable[..., Any] | None:
    """Returns the loop in JAX, or nothing where it is not installed."""
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        return None
    # Both types, in one process.
    jax.config.update("jax_enable_x64", True)

    def lap(w: Any) -> Any:
        around = jnp.roll(w, 1, 0) + jnp.roll(w, 1, 1) + jnp.roll(w, -1, 1) + jnp.roll(w, -1, 0)
        return around - 4 * w

    def step(_: Any, fields: Any) -> Any:
        u, v = fields
        du, dv, feed, kill = (u.dtype.type(value) for value in PARAMETERS.values())
        r = u * v * v
        return u + du * lap(u) - r + feed * (1 - u), v + dv * lap(v) + r - (feed + kill) * v

    # The number of steps is known when the loop is compiled, which is faster than one that is not.
    loop = jax.jit(lambda u, v, steps: jax.lax.fori_loop(0, steps, step, (u, v)), static_argnums=2)
    return loop  # type: ignore[no-any-return]


def main() -> int:
    """Runs the comparison, prints it, and writes it where it is asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--sizes", default="512,1024,2048")
    parser.add_argument("--dtypes", default="float32,float64")
    parser.add_argument("--csv")
    asked = parser.parse_args()
    loop, rows, failed = jax_loop(), [], False
    for dtype in asked.dtypes.split(","):
        for size in map(int, asked.sizes.split(",")):
            random = np.random.default_rng(1)
            u = (1 - 0.5 * random.random((size, size))).astype(dtype)
            v = (0.25 * random.random((size, size))).astype(dtype)
            recorded = gray_scott.start(u=u, v=v, backend=asked.backend, **PARAMETERS)
            rust = ab.start("gray-scott", u=u, v=v, backend=asked.backend, **PARAMETERS)
            own = {"python": recorded, "rust": rust}
            for sim in own.values():
                sim.run(100)
            bits = all(recorded[name].tobytes() == rust[name].tobytes() for name in ("u", "v"))
            failed |= not bits
            ways: dict[str, Callable[[int], float]] = {
                name: lambda steps, sim=sim: sim.run(steps).seconds for name, sim in own.items()
            }
            apart = float("nan")
            if loop is not None:
                import jax

                fields = [jax.device_put(u), jax.device_put(v)]
                after = [np.asarray(values) for values in loop(*fields, 100)]
                apart = max(float(abs(recorded[name] - own).max()) for name, own in zip("uv", after))
                failed |= not apart < 1e3 * np.finfo(dtype).eps

                def timed(steps: int) -> float:
                    began = time.perf_counter()
                    jax.block_until_ready(loop(*fields, steps))
                    return time.perf_counter() - began

                ways["jax"] = timed
            steps = {}
            for name, way in ways.items():
                way(1000)
                steps[name] = max(100, int(1000 / way(1000) * SECONDS))
                # Once for the compiler, which knows the number of steps.
                way(steps[name])
            rates: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(RUNS):
                for name, way in ways.items():
                    rates[name].append(size * size * steps[name] / way(steps[name]) / 1e9)
            for name, all_rates in rates.items():
                median = statistics.median(all_rates)
                spread = (max(all_rates) - min(all_rates)) / median
                rows.append([f"{size}x{size}", dtype, name, round(median, 1), round(100 * spread, 1), steps[name]])
            medians = {name: statistics.median(all_rates) for name, all_rates in rates.items()}
            print(
                f"{size}x{size} {dtype}: "
                + ", ".join(f"{name} {rate:.1f}" for name, rate in medians.items())
                + f" GCells/s; python/rust {medians['python'] / medians['rust']:.3f}"
                + (f", python/jax {medians['python'] / medians['jax']:.2f}" if "jax" in medians else "")
                + f"; bits of rust: {bits}, from jax at most {apart:.1e} after 100 steps; {recorded.plan.summary()}",
                flush=True,
            )
    if asked.csv:
        with open(asked.csv, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["domain", "dtype", "system", "gcells_per_s", "spread_percent", "steps"])
            writer.writerows(rows)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
