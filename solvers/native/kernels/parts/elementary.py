"""Kernels of elementary functions, of nothing but sums, products and quotients.

Every processor that rounds as IEEE 754 says computes the same bits, which C libraries do not. The
largest errors are below one unit in the last place.

A number is reduced to a short interval, where a Taylor series or that of the inverse hyperbolic
tangent converges fast. The rounding errors on the way are carried as a second, small number.
"""

from __future__ import annotations

import math
from fractions import Fraction

from flexure.solvers.native.language.language import (
    Floats,
    Static,
    exponent,
    local,
    power,
    rint,
    scaled,
    unrolled,
)

EXACT = True

_LN2 = Fraction("0.693147180559945309417232121458176568075500134360255254120680009493393622")
_HALF_PI = Fraction("1.570796326794896619231321691639751442098584699687552910487472296153908203")


def _parts(number: Fraction, *bits: int) -> tuple[float, ...]:
    """Return numbers of so many bits, and a last one, that add up to a number."""
    found = []
    for each in bits:
        unit = Fraction(2) ** (math.frexp(float(number))[1] - each)
        found.append(float(int(number / unit) * unit))
        number -= Fraction(found[-1])
    return (*found, float(number))


LN2, LN2_REST = _parts(_LN2, 32)
QUARTERS = _parts(_HALF_PI, 32, 32)
#: Taylor series behind the first terms.
EXP = tuple(1.0 / math.factorial(k) for k in range(14, 1, -1))
SIN = tuple((-1.0) ** k / math.factorial(2 * k + 1) for k in range(9, 1, -1))
COS = tuple((-1.0) ** k / math.factorial(2 * k) for k in range(9, 1, -1))
THIRD, THIRD_REST = 1.0 / 3.0, float(Fraction(1, 3) - Fraction(1.0 / 3.0))
ATANH = tuple(1.0 / (2 * k + 1) for k in range(14, 1, -1))
SPLIT = 134217729.0  # 2^27 + 1
SMALL = 1e-8  # up to which a sine is its angle
FARTHEST = 1e6  # up to which angles are reduced; the C library does it beyond
ROOT_2 = math.sqrt(2.0)
HUGE, TINY = 709.8, -745.2  # beyond which the exponential is infinite, or zero


def series(coefficients: Static, z: float) -> float:
    """Return a polynomial, the highest coefficient first."""
    total = 0.0
    for k in unrolled(len(coefficients)):
        total = total * z + coefficients[k]
    return total


def product_rest(a: float, b: float, product: float) -> float:
    """Return what rounding has lost of a product."""
    a_high = SPLIT * a - (SPLIT * a - a)
    b_high = SPLIT * b - (SPLIT * b - b)
    a_low, b_low = a - a_high, b - b_high
    return a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


def exp_of_sum(a: float, rest: float) -> float:
    """Return the exponential of a number and a small one."""
    if not (a < HUGE and a > TINY):
        return math.inf if a >= HUGE else (0.0 if a <= TINY else a)
    k = rint(a / (LN2 + LN2_REST))
    high = a - k * LN2
    low = k * LN2_REST - rest
    r = high - low
    lost = (high - r) - low
    near = 1.0 + r
    near_rest = (1.0 - near) + r
    return scaled(near + (near_rest + (lost + r * r * series(EXP, r))), int(k))


def exp_of(a: float) -> float:
    """Return an exponential."""
    return exp_of_sum(a, 0.0)


def log_of(a: float) -> float:
    """Return a natural logarithm."""
    if not (a > 0.0 and a < math.inf):
        return -math.inf if a == 0.0 else (a if a > 0.0 else math.nan)
    out = local(2)
    log_in_two(a, out)
    total: float = out[0] + out[1]
    return total


def log_in_two(a: float, out: Floats) -> None:
    """Compute the logarithm of a positive number as a number and a small one."""
    e = exponent(a)
    m = scaled(a, -e)
    if m > ROOT_2:
        m = 0.5 * m
        e += 1
    f, below = m - 1.0, m + 1.0
    below_rest = (m - (below - 1.0)) + (1.0 - (below - (below - 1.0)))
    s = f / below
    whole = s * below
    s_rest = ((f - whole) - product_rest(s, below, whole) - s * below_rest) / below
    z = s * s
    z_rest = product_rest(s, s, z) + 2.0 * s * s_rest
    # log m = 2 s (1 + z / 3 + z² (1 / 5 + ...))
    third = z * THIRD
    third_rest = product_rest(z, THIRD, third) + z_rest * THIRD + z * THIRD_REST
    third_rest += z * z * series(ATANH, z)
    bend = third + third_rest
    bend_rest = (third - bend) + third_rest
    more = s * bend
    more_rest = product_rest(s, bend, more) + s * bend_rest + s_rest * bend
    begin = e * LN2
    double = 2.0 * s
    high = begin + double
    low = 0.0 if e == 0 else double - (high - begin)
    total = high + 2.0 * more
    lost = (high - total) + 2.0 * more
    rest = lost + (low + (2.0 * (s_rest + more_rest) + e * LN2_REST))
    out[0] = total + rest
    out[1] = (total - out[0]) + rest


def pow_of(a: float, b: float) -> float:
    """Return a power."""
    if a == 0.0 or a * 0.0 != 0.0 or b * 0.0 != 0.0:
        return power(a, b)  # with the special cases of the standard
    sign = 1.0
    if a < 0.0:
        half = 0.5 * b
        if b != rint(b):
            return math.nan
        if half != rint(half):
            sign = -1.0
    out = local(2)
    log_in_two(abs(a), out)
    high = b * out[0]
    if not (high < 2.0 * HUGE and high > 2.0 * TINY):
        return sign * exp_of(high)
    return sign * exp_of_sum(high, product_rest(b, out[0], high) + b * out[1])


def turn(a: float, out: Floats) -> int:
    """Reduce an angle to within an eighth of a turn, in two numbers; return the quarter."""
    n = rint(a / (QUARTERS[0] + QUARTERS[1]))
    first = a - n * QUARTERS[0]
    second = n * QUARTERS[1]
    high = first - second
    lost = (first - high) - second if abs(first) >= abs(second) else first - (high + second)
    lost = lost - n * QUARTERS[2]
    out[0] = high + lost
    out[1] = (high - out[0]) + lost
    quarter = n - 4.0 * rint(0.25 * n)
    return int(quarter + 4.0) % 4


def sin_near(a: float, rest: float) -> float:
    """Return the sine of a small angle in two numbers."""
    z = a * a
    bend = z * a * (-1.0 / 6.0 + z * series(SIN, z))
    return a + (bend + rest * (1.0 - 0.5 * z))


def cos_near(a: float, rest: float) -> float:
    """Return the cosine of a small angle in two numbers."""
    z = a * a
    half = 0.5 * z
    high = 1.0 - half
    return high + (((1.0 - high) - half) + (z * z * series(COS, z) - a * rest))


def sin_of(a: float) -> float:
    """Return a sine."""
    if abs(a) < SMALL:
        return a
    if not abs(a) < FARTHEST:
        return math.sin(a)
    out = local(2)
    quarter = turn(a, out)
    if quarter == 0:
        return sin_near(out[0], out[1])
    if quarter == 1:
        return cos_near(out[0], out[1])
    return -sin_near(out[0], out[1]) if quarter == 2 else -cos_near(out[0], out[1])


def cos_of(a: float) -> float:
    """Return a cosine."""
    if not abs(a) < FARTHEST:
        return math.cos(a)
    out = local(2)
    quarter = turn(a, out)
    if quarter == 0:
        return cos_near(out[0], out[1])
    if quarter == 1:
        return -sin_near(out[0], out[1])
    return -cos_near(out[0], out[1]) if quarter == 2 else sin_near(out[0], out[1])
