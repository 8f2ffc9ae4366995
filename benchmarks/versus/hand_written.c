/* Two workloads as one would write them by hand: the equations inlined into the loop of an explicit
   Runge-Kutta method of order 5(4) by Dormand and Prince.

   The step sizes follow SciPy's rules for RK45: the first one from two evaluations, every other one
   from the root mean square of the scaled error estimate, with a safety factor of 0.9 and changes
   between a fifth and ten times; the step after a rejection does not grow. All constants of the
   workloads (PID_*, CHAIN_*) are defined by the compiler's command line. */

#include <math.h>
#include <stddef.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

typedef void (*equations)(double t, const double *restrict x, double *restrict dx);

/* Right-hand sides ----------------------------------------------------------------------------- */

INLINE void pid(double t, const double *restrict x, double *restrict dx) {
  const double error = PID_AMPLITUDE * sin(PID_FREQUENCY * t) - x[2];
  const double slope = (error - x[1]) / PID_FILTER_TIME;
  const double force = PID_KP * error + PID_KI * x[0] + PID_KD * slope;
  dx[0] = error;
  dx[1] = slope;
  dx[2] = x[3];
  dx[3] = (force - PID_K * x[2] - PID_D * x[3]) / PID_M;
}

INLINE void chain(double t, const double *restrict x, double *restrict dx) {
  const double *q = x, *v = x + CHAIN_COUNT;
  double pull[CHAIN_COUNT + 1];
  (void)t;
  pull[0] = CHAIN_K * (CHAIN_SPACING - CHAIN_REST_LENGTH + q[0]) + CHAIN_D * v[0];
  for (int i = 1; i < CHAIN_COUNT; i++)
    pull[i] = CHAIN_K * (CHAIN_SPACING - CHAIN_REST_LENGTH + q[i] - q[i - 1]) +
              CHAIN_D * (v[i] - v[i - 1]);
  pull[CHAIN_COUNT] = 0.0;
  for (int i = 0; i < CHAIN_COUNT; i++) {
    dx[i] = v[i];
    dx[CHAIN_COUNT + i] = (pull[i + 1] - pull[i]) / CHAIN_M;
  }
}

/* The step loop -------------------------------------------------------------------------------- */

INLINE double squared_norm(int n, const double *e, const double *a, const double *b, double rtol,
                           double atol) {
  double sum = 0.0;
  for (int i = 0; i < n; i++) {
    const double scaled = e[i] / (atol + rtol * fmax(fabs(a[i]), fabs(b[i])));
    sum += scaled * scaled;
  }
  return sum / n;
}

INLINE double first_step(equations f, int n, double t, double t_end, const double *x,
                         const double *k1, double rtol, double atol) {
  double y[n], k[n];
  const double d0 = sqrt(squared_norm(n, x, x, x, rtol, atol));
  const double d1 = sqrt(squared_norm(n, k1, x, x, rtol, atol));
  const double h0 = fmin(d0 < 1e-5 || d1 < 1e-5 ? 1e-6 : 0.01 * d0 / d1, t_end - t);
  for (int i = 0; i < n; i++) y[i] = x[i] + h0 * k1[i];
  f(t + h0, y, k);
  for (int i = 0; i < n; i++) k[i] -= k1[i];
  const double d2 = sqrt(squared_norm(n, k, x, x, rtol, atol)) / h0;
  const double h1 =
      d1 <= 1e-15 && d2 <= 1e-15 ? fmax(1e-6, 1e-3 * h0) : pow(0.01 / fmax(d1, d2), 0.2);
  return fmin(fmin(100.0 * h0, h1), t_end - t);
}

/* Integrate x from t to t_end. Returns the number of steps, or -1 when they become too small. With
   a record, each step leaves its end there: the time, then the state, for at most `room` steps. */
INLINE long integrate(equations f, int n, double t, double t_end, double *restrict x, double rtol,
                      double atol, double *restrict record, long room) {
  double k1[n], k2[n], k3[n], k4[n], k5[n], k6[n], k7[n], y[n], e[n];
  f(t, x, k1);
  double h = first_step(f, n, t, t_end, x, k1, rtol, atol);
  long steps = 0;
  while (t < t_end) {
    const double smallest = 10.0 * (nextafter(t, INFINITY) - t);
    double largest_factor = 10.0, t_new;
    h = fmax(h, smallest);
    for (;;) {
      if (h < smallest) return -1;
      t_new = fmin(t + h, t_end);
      h = t_new - t;
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
        y[i] = x[i] + h * (9017.0 / 3168.0 * k1[i] - 355.0 / 33.0 * k2[i] +
                           46732.0 / 5247.0 * k3[i] + 49.0 / 176.0 * k4[i] -
                           5103.0 / 18656.0 * k5[i]);
      f(t_new, y, k6);
      for (int i = 0; i < n; i++)
        y[i] = x[i] + h * (35.0 / 384.0 * k1[i] + 500.0 / 1113.0 * k3[i] + 125.0 / 192.0 * k4[i] -
                           2187.0 / 6784.0 * k5[i] + 11.0 / 84.0 * k6[i]);
      f(t_new, y, k7);
      for (int i = 0; i < n; i++)
        e[i] = h * (71.0 / 57600.0 * k1[i] - 71.0 / 16695.0 * k3[i] + 71.0 / 1920.0 * k4[i] -
                    17253.0 / 339200.0 * k5[i] + 22.0 / 525.0 * k6[i] - 1.0 / 40.0 * k7[i]);
      const double squared = squared_norm(n, e, x, y, rtol, atol);
      const double factor = 0.9 * pow(squared, -0.1);
      if (squared < 1.0) {
        h *= fmin(factor, largest_factor);
        break;
      }
      h *= fmax(factor, 0.2);
      largest_factor = 1.0;
    }
    t = t_new;
    memcpy(x, y, n * sizeof(double));
    memcpy(k1, k7, n * sizeof(double));
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
  long name##_run(double t_end, double *x, double rtol, double atol, double *record, long room) { \
    return integrate(name, size, 0.0, t_end, x, rtol, atol, record, room);                         \
  }                                                                                                \
  void name##_evaluate(double t, const double *x, double *dx) { name(t, x, dx); }                  \
  void name##_repeat(long count, const double *x, double *dx) { repeat(name, count, x, dx); }

WORKLOAD(pid, 4)
WORKLOAD(chain, 2 * CHAIN_COUNT)
