static double sign(double a)
{
  return (a > 0.0) ? 1.0 : ((a < 0.0) ? -1.0 : (a + 0.0));
}

static double maximum(double a, double b)
{
  return ((a >= b) || isnan(a)) ? a : b;
}

static double minimum(double a, double b)
{
  return ((a <= b) || isnan(a)) ? a : b;
}

static double remainder_of(double a, double b)
{
  double rest = fmod(a, b);
  if (b != 0.0) {
    if (rest == 0.0) {
      rest = copysign(0.0, b);
    } else if ((b < 0.0) != (rest < 0.0)) {
      rest = rest + b;
    } else {
      /* it has the sign of the divisor */
    }
  }
  return rest;
}

static double floor_divide(double a, double b)
{
  const double rest = fmod(a, b);
  double quotient = a / b;
  if (b != 0.0) {
    const double zero = copysign(0.0, quotient);
    quotient = (a - rest) / b;
    if ((rest != 0.0) && ((b < 0.0) != (rest < 0.0))) {
      quotient = quotient - 1.0;
    }
    if (quotient == 0.0) {
      quotient = zero;
    } else {
      const double down = floor(quotient);
      quotient = ((quotient - down) > 0.5) ? (down + 1.0) : down;
    }
  }
  return quotient;
}
