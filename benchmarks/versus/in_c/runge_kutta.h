/* Explicit Runge-Kutta loops as one would write them by hand, for equations that are inlined: the
   methods of order 5(4) by Dormand and Prince and of order 8(5,3), DOP853, by Hairer and Wanner.

   The step sizes follow SciPy's rules for RK45 and DOP853: the first one from two evaluations, every
   other one from the scaled error estimate, with a safety factor of 0.9 and changes between a fifth
   and ten times; the step after a rejection does not grow. */

#include <math.h>
#include <stddef.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

typedef void (*equations)(double t, const double *restrict x, double *restrict dx);

enum method { DORMAND_PRINCE, DOP853 };

INLINE double scale(double a, double b, double rtol, double atol) {
  return atol + rtol * fmax(fabs(a), fabs(b));
}

/* Steps ---------------------------------------------------------------------------------------- */

/* Both try a step from x to y, with the slopes k at x and k_new at y, and return the square of the
   norm of its error. */

INLINE double dormand_prince(equations f, int n, double t, double h, double t_new,
                             const double *restrict x, const double *restrict k1,
                             double *restrict y, double *restrict k7, double rtol, double atol) {
  double k2[n], k3[n], k4[n], k5[n], k6[n], sum = 0.0;
  for (int i = 0; i < n; i++) y[i] = x[i] + h * (1.0 / 5.0 * k1[i]);
  f(t + h / 5.0, y, k2);
  for (int i = 0; i < n; i++) y[i] = x[i] + h * (3.0 / 40.0 * k1[i] + 9.0 / 40.0 * k2[i]);
  f(t + 3.0 / 10.0 * h, y, k3);
  for (int i = 0; i < n; i++)
    y[i] = x[i] + h * (44.0 / 45.0 * k1[i] - 56.0 / 15.0 * k2[i] + 32.0 / 9.0 * k3[i]);
  f(t + 4.0 / 5.0 * h, y, k4);
  for (int i = 0; i < n; i++)
    y[i] = x[i] + h * (19372.0 / 6561.0 * k1[i] - 25360.0 / 2187.0 * k2[i] +
                       64448.0 / 6561.0 * k3[i] - 212.0 / 729.0 * k4[i]);
  f(t + 8.0 / 9.0 * h, y, k5);
  for (int i = 0; i < n; i++)
    y[i] = x[i] + h * (9017.0 / 3168.0 * k1[i] - 355.0 / 33.0 * k2[i] + 46732.0 / 5247.0 * k3[i] +
                       49.0 / 176.0 * k4[i] - 5103.0 / 18656.0 * k5[i]);
  f(t_new, y, k6);
  for (int i = 0; i < n; i++)
    y[i] = x[i] + h * (35.0 / 384.0 * k1[i] + 500.0 / 1113.0 * k3[i] + 125.0 / 192.0 * k4[i] -
                       2187.0 / 6784.0 * k5[i] + 11.0 / 84.0 * k6[i]);
  f(t_new, y, k7);
  for (int i = 0; i < n; i++) {
    const double error = h * (71.0 / 57600.0 * k1[i] - 71.0 / 16695.0 * k3[i] +
                              71.0 / 1920.0 * k4[i] - 17253.0 / 339200.0 * k5[i] +
                              22.0 / 525.0 * k6[i] - 1.0 / 40.0 * k7[i]);
    const double scaled = error / scale(x[i], y[i], rtol, atol);
    sum += scaled * scaled;
  }
  return sum / n;
}

INLINE double dop853(equations f, int n, double t, double h, double t_new,
                     const double *restrict x, const double *restrict k1, double *restrict y,
                     double *restrict k13, double rtol, double atol) {
  double k2[n], k3[n], k4[n], k5[n], k6[n], k7[n], k8[n], k9[n], k10[n], k11[n], k12[n];
  double sum5 = 0.0, sum3 = 0.0;
  for (int i = 0; i < n; i++) y[i] = x[i] + h * (0.05260015195876773 * k1[i]);
  f(t + 0.05260015195876773 * h, y, k2);
  for (int i = 0; i < n; i++)
    y[i] = x[i] + h * (0.0197250569845379 * k1[i] + 0.0591751709536137 * k2[i]);
  f(t + 0.0789002279381516 * h, y, k3);
  for (int i = 0; i < n; i++)
    y[i] = x[i] + h * (0.02958758547680685 * k1[i] + 0.08876275643042054 * k3[i]);
  f(t + 0.1183503419072274 * h, y, k4);
  for (int i = 0; i < n; i++)
    y[i] = x[i] + h * (0.2413651341592667 * k1[i] - 0.8845494793282861 * k3[i] +
                       0.924834003261792 * k4[i]);
  f(t + 0.2816496580927726 * h, y, k5);
  for (int i = 0; i < n; i++)
    y[i] = x[i] + h * (1.0 / 27.0 * k1[i] + 0.17082860872947386 * k4[i] +
                       0.12546768756682242 * k5[i]);
  f(t + 1.0 / 3.0 * h, y, k6);
  for (int i = 0; i < n; i++)
    y[i] = x[i] + h * (19.0 / 512.0 * k1[i] + 0.17025221101954405 * k4[i] +
                       0.06021653898045596 * k5[i] - 9.0 / 512.0 * k6[i]);
  f(t + 1.0 / 4.0 * h, y, k7);
  for (int i = 0; i < n; i++)
    y[i] = x[i] + h * (0.03709200011850479 * k1[i] + 0.17038392571223998 * k4[i] +
                       0.10726203044637328 * k5[i] - 0.015319437748624402 * k6[i] +
                       0.008273789163814023 * k7[i]);
  f(t + 4.0 / 13.0 * h, y, k8);
  for (int i = 0; i < n; i++)
    y[i] = x[i] + h * (0.6241109587160757 * k1[i] - 3.3608926294469414 * k4[i] -
                       0.868219346841726 * k5[i] + 27.59209969944671 * k6[i] +
                       20.154067550477894 * k7[i] - 43.48988418106996 * k8[i]);
  f(t + 127.0 / 195.0 * h, y, k9);
  for (int i = 0; i < n; i++)
    y[i] = x[i] + h * (0.47766253643826434 * k1[i] - 2.4881146199716677 * k4[i] -
                       0.590290826836843 * k5[i] + 21.230051448181193 * k6[i] +
                       15.279233632882423 * k7[i] - 33.28821096898486 * k8[i] -
                       0.020331201708508627 * k9[i]);
  f(t + 3.0 / 5.0 * h, y, k10);
  for (int i = 0; i < n; i++)
    y[i] = x[i] + h * (-0.9371424300859873 * k1[i] + 5.186372428844064 * k4[i] +
                       1.0914373489967295 * k5[i] - 8.149787010746927 * k6[i] -
                       18.52006565999696 * k7[i] + 22.739487099350505 * k8[i] +
                       2.4936055526796523 * k9[i] - 3.0467644718982196 * k10[i]);
  f(t + 6.0 / 7.0 * h, y, k11);
  for (int i = 0; i < n; i++)
    y[i] = x[i] + h * (2.273310147516538 * k1[i] - 10.53449546673725 * k4[i] -
                       2.0008720582248625 * k5[i] - 17.9589318631188 * k6[i] +
                       27.94888452941996 * k7[i] - 2.8589982771350235 * k8[i] -
                       8.87285693353063 * k9[i] + 12.360567175794303 * k10[i] +
                       0.6433927460157636 * k11[i]);
  f(t_new, y, k12);
  for (int i = 0; i < n; i++)
    y[i] = x[i] + h * (0.054293734116568765 * k1[i] + 4.450312892752409 * k6[i] +
                       1.8915178993145003 * k7[i] - 5.801203960010585 * k8[i] +
                       0.3111643669578199 * k9[i] - 0.1521609496625161 * k10[i] +
                       0.20136540080403034 * k11[i] + 0.04471061572777259 * k12[i]);
  f(t_new, y, k13);
  for (int i = 0; i < n; i++) {
    const double error5 = 0.01312004499419488 * k1[i] - 1.2251564463762044 * k6[i] -
                          0.4957589496572502 * k7[i] + 1.6643771824549864 * k8[i] -
                          0.35032884874997366 * k9[i] + 0.3341791187130175 * k10[i] +
                          0.08192320648511571 * k11[i] - 0.022355307863886294 * k12[i];
    const double error3 = -0.18980075407240762 * k1[i] + 4.450312892752409 * k6[i] +
                          1.8915178993145003 * k7[i] - 5.801203960010585 * k8[i] -
                          0.4226823213237919 * k9[i] - 0.1521609496625161 * k10[i] +
                          0.20136540080403034 * k11[i] + 0.02265179219836082 * k12[i];
    const double weight = 1.0 / scale(x[i], y[i], rtol, atol);
    sum5 += error5 * weight * (error5 * weight);
    sum3 += error3 * weight * (error3 * weight);
  }
  return sum5 > 0.0 ? h * h * sum5 * sum5 / ((sum5 + 0.01 * sum3) * n) : sum5;
}

/* The loop ------------------------------------------------------------------------------------- */

INLINE double norm(int n, const double *e, const double *x, double rtol, double atol) {
  double sum = 0.0;
  for (int i = 0; i < n; i++) {
    const double scaled = e[i] / scale(x[i], x[i], rtol, atol);
    sum += scaled * scaled;
  }
  return sqrt(sum / n);
}

INLINE double first_step(equations f, int n, double order, double t, double t_end, const double *x,
                         const double *k1, double rtol, double atol) {
  double y[n], k[n];
  const double d0 = norm(n, x, x, rtol, atol), d1 = norm(n, k1, x, rtol, atol);
  const double h0 = fmin(d0 < 1e-5 || d1 < 1e-5 ? 1e-6 : 0.01 * d0 / d1, t_end - t);
  for (int i = 0; i < n; i++) y[i] = x[i] + h0 * k1[i];
  f(t + h0, y, k);
  for (int i = 0; i < n; i++) k[i] -= k1[i];
  const double d2 = norm(n, k, x, rtol, atol) / h0;
  const double h1 =
      d1 <= 1e-15 && d2 <= 1e-15 ? fmax(1e-6, 1e-3 * h0) : pow(0.01 / fmax(d1, d2), 1.0 / order);
  return fmin(fmin(100.0 * h0, h1), t_end - t);
}

/* Integrate x from t to t_end. Returns the number of steps, or -1 when they become too small. With
   a record, each step leaves its end there: the time, then the state, for at most `room` steps. */
INLINE long integrate(equations f, enum method method, int n, double t, double t_end,
                      double *restrict x, double rtol, double atol, double *restrict record,
                      long room) {
  const double order = method == DOP853 ? 8.0 : 5.0;  /* of the step in the error estimate */
  double k[n], k_new[n], y[n];
  f(t, x, k);
  double h = first_step(f, n, order, t, t_end, x, k, rtol, atol);
  long steps = 0;
  while (t < t_end) {
    const double smallest = 10.0 * (nextafter(t, INFINITY) - t);
    double largest_factor = 10.0, t_new;
    h = fmax(h, smallest);
    for (;;) {
      if (h < smallest) return -1;
      t_new = fmin(t + h, t_end);
      h = t_new - t;
      const double squared =
          method == DOP853 ? dop853(f, n, t, h, t_new, x, k, y, k_new, rtol, atol)
                           : dormand_prince(f, n, t, h, t_new, x, k, y, k_new, rtol, atol);
      const double factor = 0.9 * pow(squared, -0.5 / order);
      if (squared < 1.0) {
        h *= fmin(factor, largest_factor);
        break;
      }
      h *= fmax(factor, 0.2);
      largest_factor = 1.0;
    }
    t = t_new;
    memcpy(x, y, n * sizeof(double));
    memcpy(k, k_new, n * sizeof(double));
    if (record != NULL && steps < room) {
      record[steps * (n + 1)] = t;
      memcpy(record + steps * (n + 1) + 1, x, n * sizeof(double));
    }
    steps++;
  }
  return steps;
}

/* What is called from outside ------------------------------------------------------------------ */

/* The right-hand side over and over; the compiler must not know that nothing changes. */
INLINE void repeat(equations f, long count, const double *x, double *dx) {
  for (long i = 0; i < count; i++) {
    f(1e-6 * (double)i, x, dx);
    __asm__ volatile("" : : "r"(x), "r"(dx) : "memory");
  }
}

#define WORKLOAD(name, size)                                                                       \
  long name##_dormand_prince(double t_end, double *x, double rtol, double atol, double *record,   \
                             long room) {                                                          \
    return integrate(name, DORMAND_PRINCE, size, 0.0, t_end, x, rtol, atol, record, room);         \
  }                                                                                                \
  long name##_dop853(double t_end, double *x, double rtol, double atol, double *record,           \
                     long room) {                                                                  \
    return integrate(name, DOP853, size, 0.0, t_end, x, rtol, atol, record, room);                 \
  }                                                                                                \
  void name##_evaluate(double t, const double *x, double *dx) { name(t, x, dx); }                  \
  void name##_repeat(long count, const double *x, double *dx) { repeat(name, count, x, dx); }
