"""Writes reference.csv: functions of arguments in f64, easy, hard and extreme, by mpmath at 400 bits.

Each line is a function, its arguments, and the value as the sum of two numbers. Run it with mpmath 1.3.
"""
import random

import mpmath

mpmath.mp.prec = 2400
random.seed(20)
HARD = 6381956970095103.0 * 2.0**797


def near_quarters(count):
    return [float(mpmath.mpf(random.randrange(1, 2**e)) * mpmath.pi / 2) for e in range(1, 52) for _ in range(count)]


def powers(low, high, count):
    return [random.uniform(1, 2) * 2.0 ** random.randrange(low, high) for _ in range(count)]


ANGLES = near_quarters(2) + powers(-30, 1023, 60) + [HARD, 1e22, 1.7976931348623157e308, 262144.0, 262145.0]
ONE = {
    "exp": (mpmath.exp, [random.uniform(-708, 709) for _ in range(60)] + powers(-60, 1, 40)),
    "log": (mpmath.log, powers(-1022, 1023, 60) + [1 + s * 2.0**-e for e in range(1, 53) for s in (1, -0.5)]),
    "sin": (mpmath.sin, ANGLES),
    "cos": (mpmath.cos, ANGLES),
    "tanh": (mpmath.tanh, [random.uniform(-20, 20) for _ in range(60)] + powers(-40, 1, 40)),
    # Nearer to the ends, the low parts of the series would be subnormal.
    "cbrt": (mpmath.cbrt, powers(-900, 900, 60)),
    "expm1": (mpmath.expm1, [random.uniform(-40, 709) for _ in range(60)] + powers(-60, 1, 60)),
    "log1p": (mpmath.log1p, powers(-60, 1000, 60) + [random.uniform(-0.999, 1) for _ in range(40)]),
    "erf": (mpmath.erf, [n * 0.11 for n in range(-54, 55) if n] + [1 + s * 2.0**-e for e in range(1, 53) for s in (1, -0.5)]),
}
BASES = powers(-1022, 1023, 60) + [1 + s * 2.0**-e for e in range(1, 53) for s in (1, -0.5)]
TWO = {
    "pow": (
        mpmath.power,
        [(x, random.uniform(-708, 709) / float(mpmath.log(x))) for x in BASES] + [(x, 1.5) for x in powers(-600, 600, 30)],
    ),
    "atan2": (
        mpmath.atan2,
        [(s * 1.7, t * 1.7 * k * (1 + d * 2.0**-e)) for s in (1, -1) for t in (1, -1) for k in (0.5, 1, 2) for d in (1, -0.5) for e in range(1, 53, 5)]
        + [(s * 0.3 * 2.0**e, 0.7 * t * 2.0**-e) for s in (1, -1) for t in (1, -1) for e in range(-300, 301, 50)],
    ),
}
with open("reference.csv", "w") as out:
    out.write("function,x,y,high,low\n")
    for name, (function, arguments) in ONE.items():
        for x in arguments:
            value = function(mpmath.mpf(x))
            out.write(f"{name},{x!r},0.0,{float(value)!r},{float(value - mpmath.mpf(float(value)))!r}\n")
    for name, (function, arguments) in TWO.items():
        for x, y in arguments:
            value = function(mpmath.mpf(x), mpmath.mpf(y))
            out.write(f"{name},{x!r},{y!r},{float(value)!r},{float(value - mpmath.mpf(float(value)))!r}\n")
