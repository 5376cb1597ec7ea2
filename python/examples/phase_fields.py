"""Equations of 4th and 6th order that form patterns: Cahn-Hilliard, phase-field crystal, Kuramoto-Sivashinsky.

All are explicit in time. Where an inner field has a name of its own, each formula reads the nearest cells alone.
"""

import argparse

import numpy as np

import pyabide as ab


def laplacian(w):
    return w[-1, 0] + w[0, -1] + w[0, 1] + w[1, 0] - 4 * w


@ab.program(2, boundary="periodic")
def cahn_hilliard(c, mu=ab.temporary(), kappa=1.0, dt=ab.parameter(0.02, "below 1 / (32 kappa)")):
    """A mixture separates: c_t = lap mu, mu = c^3 - c - kappa lap c."""
    yield {"mu": c * c * c - c - kappa * laplacian(c)}
    yield {"c": c + dt * laplacian(mu)}


@ab.program(2, boundary="periodic")
def phase_field_crystal(
    n,
    bent=ab.temporary(),
    mu=ab.temporary(),
    r=ab.parameter(-0.6, "undercooling"),
    h=ab.parameter(1.0, "width of a cell"),
    dt=ab.parameter(0.002, "below h^6 / 256"),
):
    """A liquid freezes to a crystal: n_t = lap mu, mu = (r + (1 + lap)^2) n + n^3."""
    yield {"bent": n + laplacian(n) / (h * h)}
    yield {"mu": r * n + (bent + laplacian(bent) / (h * h)) + n * n * n}
    yield {"n": n + dt * laplacian(mu) / (h * h)}


@ab.program(1, boundary="periodic")
def kuramoto_sivashinsky(u, h=ab.parameter(0.5, "width of a cell"), dt=ab.parameter(0.002, "below h^4 / 8")):
    """Chaos of a flame front: u_t = -u_xx - u_xxxx - u u_x."""
    second = (u[-1] - 2 * u + u[1]) / (h * h)
    fourth = (u[-2] - 4 * u[-1] + 6 * u - 4 * u[1] + u[2]) / (h * h * h * h)
    yield {"u": u - dt * (second + fourth + (u[1] * u[1] - u[-1] * u[-1]) / (4 * h))}


def growth_rates(backend="auto"):
    """The growth of one small wave in each equation: pairs of the measured rate and that of linear theory."""
    rates = []

    def measure(program, field, mean, wave, time, theory, **parameters):
        sim = program.start(**{field: mean + 1e-7 * wave}, **parameters, backend=backend)
        sim.run(round(time / sim.parameters["dt"]))
        final = ((sim[field] - mean) * wave).sum() / (wave * wave).sum()
        rates.append((np.log(final / 1e-7) / time, theory))

    k = 2 * np.pi / 40
    wave = np.tile(np.cos(k * np.arange(40)), (4, 1))
    measure(cahn_hilliard, "c", 0.0, wave, 200.0, k**2 - k**4)
    h, r, mean = 0.6, -0.6, -0.35
    k = 2 * np.pi / (10 * h)
    wave = np.tile(np.cos(k * h * np.arange(10)), (4, 1))
    theory = -(k**2) * (r + 3 * mean**2 + (1 - k**2) ** 2)
    measure(phase_field_crystal, "n", mean, wave, 15.0, theory, h=h, dt=1.5e-4)
    h, k = 0.5, 2 * np.pi / 20
    measure(kuramoto_sivashinsky, "u", 0.0, np.cos(k * h * np.arange(40)), 40.0, k**2 - k**4, h=h)
    return rates


def main():
    arguments = argparse.ArgumentParser(description="A mixture, a crystal, and a flame front against time.")
    arguments.add_argument("--backend", default="auto")
    arguments.add_argument("--picture", default="phase_fields.png")
    options = arguments.parse_args()

    random = np.random.default_rng(1)
    size = 112
    mixture = cahn_hilliard.start(c=0.2 * random.standard_normal((size, size)), backend=options.backend)
    mixture.run(10_000)
    # The crystal grows from a seed of noise in the middle.
    liquid = np.full((size, size), -0.35)
    liquid[46:66, 46:66] += 0.5 * random.standard_normal((20, 20))
    crystal = phase_field_crystal.start(n=liquid, backend=options.backend)
    crystal.run(15_000)
    front = kuramoto_sivashinsky.start(u=0.1 * random.standard_normal(size), backend=options.backend)
    front.run(10_000)
    rows = [frame["u"].values for frame in front.frames(500 * size, every=500, progress=False)]

    parts = [mixture["c"], crystal["n"], np.array(rows)]
    levels = [np.round(4 * np.clip((part - part.mean()) / (2 * part.std()), -1, 1)) for part in parts]
    ab.FieldValues(np.hstack(levels), "phase fields", 0).png(range=(-4, 4)).save(options.picture)
    worst = max(abs(measured / theory - 1) for measured, theory in growth_rates(options.backend))
    print(f"{options.picture}; growth of small waves within {worst:.1%} of linear theory")


if __name__ == "__main__":
    main()
