"""Writes derived.csv: derivatives, partial quantities and diffusivities of mixtures to 34 digits, by mpmath.

Everything is taken from the definitions: the free energy of Peng and Robinson with NASA's polynomials, extensive in the
moles of each species, and its numerical derivatives with 60 digits; diffusivities by the formula of Chapman and Enskog in
molecules and joules. Run it in its own folder: python3 derived.py > derived.csv
"""

import csv
import itertools
import random

from mpmath import mp, mpf, diff, exp, findroot, log, pi, polyroots, sqrt

mp.dps = 60
R, NA, K = mpf("8.31446261815324"), mpf("6.02214076e23"), mpf("1.380649e-23")
NAMES = ["CH4", "O2", "CO2", "H2O", "N2", "C3H8"]
KIJ = {("CH4", "CO2"): "0.1", ("H2O", "CO2"): "0.12", ("N2", "CH4"): "0.03", ("C3H8", "H2O"): "-0.05"}
# NASA's polynomials and the critical data as decimal text.
with open("../../data/species.csv") as file:
    rows = {row["name"]: row for row in csv.DictReader(line for line in file if not line.startswith("#"))}
S = [{key: mpf(value) for key, value in rows[name].items() if key not in ("name", "source_of_critical_data")} for name in NAMES]
N = len(NAMES)
k = [[mpf(KIJ.get((a, b), KIJ.get((b, a), "0"))) for b in NAMES] for a in NAMES]
OMEGA_A, OMEGA_B = mpf("0.4572355289213822"), mpf("0.0777960739038885")


def kappa(w):
    if w <= mpf("0.491"):
        return mpf("0.37464") + mpf("1.54226") * w - mpf("0.26992") * w**2
    return mpf("0.374642") + mpf("1.487503") * w - mpf("0.164423") * w**2 + mpf("0.016666") * w**3


def attraction(T, n):
    root = [sqrt(OMEGA_A / s["pc"]) * R * s["Tc"] * abs(1 + kappa(s["omega"]) * (1 - sqrt(T / s["Tc"]))) for s in S]
    return sum(n[i] * n[j] * (1 - k[i][j]) * root[i] * root[j] for i in range(N) for j in range(N))


def covolume(n):
    return sum(n[i] * OMEGA_B * R * S[i]["Tc"] / S[i]["pc"] for i in range(N))


def pressure(T, V, n):
    a, b = attraction(T, n), covolume(n)
    return sum(n) * R * T / (V - b) - a / (V * V + 2 * V * b - b * b)


def volume(T, p, n, near=None):
    if near is not None:
        return findroot(lambda V: pressure(T, V, n) / p - 1, near)
    a, b, m = attraction(T, n), covolume(n), sum(n)
    c = [p, b * p - m * R * T, a - 3 * p * b * b - 2 * b * m * R * T, p * b**3 + m * R * T * b * b - a * b]
    real = [root.real for root in polyroots(c, maxsteps=500, extraprec=300) if abs(root.imag) < mpf(10) ** -40 and root.real > b]
    return real[0] if len(real) == 1 else None


def ideal(T, s):
    a = [s[("lo" if T <= s["Tmid"] else "hi") + str(i)] for i in range(7)]
    return R * (a[5] + T * (a[0] + T * (a[1] / 2 + T * (a[2] / 3 + T * (a[3] / 4 + T * a[4] / 5)))))


def enthalpy(T, p, n, V):
    """The enthalpy in J of so many moles: p V + U, U = sum n h0 - n R T + (T a' - a) L."""
    a, b = attraction(T, n), covolume(n)
    slope = diff(lambda t: attraction(t, n), T)
    L = log((V + (1 + sqrt(mpf(2))) * b) / (V + (1 - sqrt(mpf(2))) * b)) / (2 * sqrt(mpf(2)) * b)
    return p * V + sum(n[i] * (ideal(T, S[i]) - R * T) for i in range(N)) + (T * slope - a) * L


def diffusivity(T, p, i, j):
    sigma = (S[i]["sigma"] + S[j]["sigma"]) / 2 * mpf("1e-10")
    depth = sqrt(S[i]["eps_k"] * S[j]["eps_k"])
    # Dipoles in debye, 1 D^2 = 1e-36 erg cm^3.
    delta = [mpf("1e-36") * s["dipole"] ** 2 / (2 * K * mpf("1e7") * s["eps_k"] * (s["sigma"] * mpf("1e-8")) ** 3) for s in (S[i], S[j])]
    t = T / depth
    omega = mpf("1.06036") / t ** mpf("0.15610") + mpf("0.19300") * exp(mpf("-0.47635") * t)
    omega += mpf("1.03587") * exp(mpf("-1.52996") * t) + mpf("1.76474") * exp(mpf("-3.89411") * t)
    omega += mpf("0.19") * delta[0] * delta[1] / t
    m = [s["W"] / 1000 / NA for s in (S[i], S[j])]
    reduced = m[0] * m[1] / (m[0] + m[1])
    return 3 / mpf(16) * sqrt(2 * pi * (K * NA / NA * T) ** 3 / reduced) / (p * pi * sigma**2 * omega)


def row(T, p, x):
    V = volume(T, p, x)
    if V is None:
        return None
    W = [s["W"] / 1000 for s in S]
    M = sum(a * b for a, b in zip(x, W))
    at = lambda T, p, n: volume(T, p, n, V)
    rho = lambda T, p: M / at(T, p, x)
    full = lambda T, p, n: enthalpy(T, p, n, at(T, p, n))
    with_one = lambda i, value: [value if j == i else x[j] for j in range(N)]
    values = {"rho": M / V, "h": full(T, p, x) / M}
    values["cp"] = diff(lambda t: full(t, p, x), T) / M
    values["rho_T"] = diff(lambda t: rho(t, p), T)
    values["rho_p"] = diff(lambda q: rho(T, q), p)
    values["h_p"] = diff(lambda q: full(T, q, x), p) / M
    for i in range(N):
        values[f"h_Y_{NAMES[i]}"] = diff(lambda n: full(T, p, with_one(i, n)), x[i]) / W[i]
        values[f"v_Y_{NAMES[i]}"] = diff(lambda n: at(T, p, with_one(i, n)), x[i]) / W[i]
    for i in range(N):
        rest = [j for j in range(N) if j != i]
        mass = sum(x[j] * W[j] for j in rest)
        values[f"D_{NAMES[i]}"] = mass / M / sum(x[j] / diffusivity(T, p, i, j) for j in rest)
    for i, j in itertools.combinations(range(N), 2):
        values[f"Dij_{NAMES[i]}_{NAMES[j]}"] = diffusivity(T, p, i, j)
    return values


random.seed(5)
states = []
while len(states) < 40:
    T = mpf(str(random.choice([160, 220, 300, 500, 800, 1200, 2300]))) + mpf(len(states)) / 4
    p = mpf(str(random.choice(["1e5", "1e6", "5e6", "1e7", "3e7"])))
    parts = [random.choice([0, 0, 1, 3, 10]) for _ in NAMES]
    if sum(part > 0 for part in parts) < 2:
        continue
    # Fractions of 16 binary digits sum to 1 in doubles too.
    whole = [int(65536 * part / sum(parts)) for part in parts]
    whole[max(range(N), key=lambda i: whole[i])] += 65536 - sum(whole)
    x = [mpf(part) / 65536 for part in whole]
    values = row(T, p, x)
    if values is not None:
        states.append((T, p, x, values))
print("# 34 digits of what derived.py computes; SI units, per kilogram.")
for a, b in KIJ:
    print(f"# kij {a} {b} {KIJ[a, b]}")
print(",".join(["T", "p"] + [f"x_{name}" for name in NAMES] + list(states[0][3])))
for T, p, x, values in states:
    print(",".join([mp.nstr(T, 17), mp.nstr(p, 17)] + [mp.nstr(f, 20) for f in x] + [mp.nstr(v, 34) for v in values.values()]))
