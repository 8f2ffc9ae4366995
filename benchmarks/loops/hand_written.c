/* Two mechanisms with closed loops as one would write them by hand, for the loops in runge_kutta.h.

   The coordinates are the angles of a tree. Loops are closed by forces λ at the points where tips
   of arms meet: M a = b + Jᵀ λ with J a = -(bias + 2 α φ̇ + α² φ), the equations that Flexure has.
   Everything is in a plane, and the equations of an arm of two bodies are those of a double
   pendulum in the absolute rates. Constants of the mechanisms are defined by the compiler's command
   line, such as K1 as the mass, the moment of inertia about the joint, and the center of mass. */

#include "../versus/in_c/runge_kutta.h"

typedef struct {
  double x, y;
} vector;

typedef struct {
  double mass, moment;
  vector center;
} body;

/* What an arm does where its loops leave it free, and what a force at its tip adds to that: rates,
   and place, velocity and acceleration of the tip. */
typedef struct {
  double a[2], per_x[2], per_y[2];
  vector tip, velocity, acceleration;
  double xx, xy, yy; /* acceleration of the tip per force */
} arm;

INLINE vector turned(double c, double s, vector v) {
  return (vector){c * v.x - s * v.y, s * v.x + c * v.y};
}

INLINE vector sum(vector a, vector b) { return (vector){a.x + b.x, a.y + b.y}; }

/* One body on a joint at `base`, under a moment. */
INLINE arm single(body k, vector base, vector tip, double q, double v, double moment, double g) {
  const double c = cos(q), s = sin(q), flexible = 1.0 / k.moment;
  const vector center = turned(c, s, k.center), r = turned(c, s, tip);
  arm result;
  result.a[0] = (moment - g * k.mass * center.x) * flexible;
  result.per_x[0] = -r.y * flexible;
  result.per_y[0] = r.x * flexible;
  result.tip = sum(base, r);
  result.velocity = (vector){-r.y * v, r.x * v};
  result.acceleration =
      (vector){-r.y * result.a[0] - r.x * v * v, r.x * result.a[0] - r.y * v * v};
  result.xx = -r.y * result.per_x[0];
  result.xy = -r.y * result.per_y[0];
  result.yy = r.x * result.per_y[0];
  return result;
}

/* Two bodies, the second on a joint at `elbow` of the first; rates of the second are relative. */
INLINE arm pair(body k, body m, vector base, vector elbow, vector tip, const double *q,
                const double *v, double moment, double g) {
  const double angle = q[0] + q[1], u = v[0], w = v[0] + v[1];
  const double c = cos(q[0]), s = sin(q[0]), cc = cos(angle), ss = sin(angle);
  const vector first = turned(c, s, k.center), r = turned(c, s, elbow);
  const vector second = turned(cc, ss, m.center), t = turned(cc, ss, tip);
  const double A = k.moment + m.mass * (elbow.x * elbow.x + elbow.y * elbow.y), C = m.moment;
  const double B = m.mass * (r.x * second.x + r.y * second.y);
  const double twist = m.mass * (r.x * second.y - r.y * second.x);
  const double inverse = 1.0 / (A * C - B * B);
  const double a = C * inverse, b = -B * inverse, d = A * inverse;
  const double Q = moment + twist * w * w - g * (k.mass * first.x + m.mass * r.x);
  const double P = -twist * u * u - g * m.mass * second.x;
  const double ua = a * Q + b * P, wa = b * Q + d * P;
  const double ux = -a * r.y - b * t.y, wx = -b * r.y - d * t.y;
  const double uy = a * r.x + b * t.x, wy = b * r.x + d * t.x;
  arm result;
  result.a[0] = ua;
  result.a[1] = wa - ua;
  result.per_x[0] = ux;
  result.per_x[1] = wx - ux;
  result.per_y[0] = uy;
  result.per_y[1] = wy - uy;
  result.tip = sum(base, sum(r, t));
  result.velocity = (vector){-r.y * u - t.y * w, r.x * u + t.x * w};
  result.acceleration = (vector){-r.y * ua - t.y * wa - r.x * u * u - t.x * w * w,
                                 r.x * ua + t.x * wa - r.y * u * u - t.y * w * w};
  result.xx = -r.y * ux - t.y * wx;
  result.xy = -r.y * uy - t.y * wy;
  result.yy = r.x * uy + t.x * wy;
  return result;
}

/* What is asked of the difference of two tips along one direction. */
INLINE double asked(double a, double b, double va, double vb, double aa, double ab, double pace) {
  return -(aa - ab + 2.0 * pace * (va - vb) + pace * pace * (a - b));
}

/* A four-bar linkage: the pair of crank and coupler, and the rocker. */
INLINE void four_bar(double t, const double *restrict x, double *restrict dx) {
  const double *q = x, *v = x + 3, pace = FOUR_BAR_PACE, g = FOUR_BAR_G;
  const arm a = pair(CRANK, COUPLER, (vector){0.0, 0.0}, KNEE, COUPLER_TIP, q, v, 0.0, g);
  const arm b = single(ROCKER, FOOT, ROCKER_TIP, q[2], v[2], 0.0, g);
  (void)t;
  const double X = asked(a.tip.x, b.tip.x, a.velocity.x, b.velocity.x, a.acceleration.x,
                         b.acceleration.x, pace);
  const double Y = asked(a.tip.y, b.tip.y, a.velocity.y, b.velocity.y, a.acceleration.y,
                         b.acceleration.y, pace);
  const double xx = a.xx + b.xx, xy = a.xy + b.xy, yy = a.yy + b.yy;
  const double inverse = 1.0 / (xx * yy - xy * xy);
  const double fx = (yy * X - xy * Y) * inverse, fy = (xx * Y - xy * X) * inverse;
  for (int i = 0; i < 3; i++) dx[i] = v[i];
  for (int i = 0; i < 2; i++) dx[3 + i] = a.a[i] + a.per_x[i] * fx + a.per_y[i] * fy;
  dx[5] = b.a[0] - b.per_x[0] * fx - b.per_y[0] * fy;
}

/* Solve a x = b for a symmetric positive definite matrix, of which the lower triangle is given. */
INLINE void solve(double a[6][6], double *restrict b) {
  double pivot[6];
#pragma GCC unroll 6
  for (int j = 0; j < 6; j++) {
    double row[6], d = a[j][j];
    for (int k = 0; k < j; k++) {
      row[k] = a[j][k] * pivot[k];
      d -= a[j][k] * row[k];
    }
    pivot[j] = d;
    const double inverse = 1.0 / d;
    for (int i = j + 1; i < 6; i++) {
      double entry = a[i][j];
      for (int k = 0; k < j; k++) entry -= a[i][k] * row[k];
      a[i][j] = entry * inverse;
      b[i] -= a[i][j] * b[j];
    }
    b[j] *= inverse;
  }
#pragma GCC unroll 6
  for (int j = 5; j >= 0; j--)
    for (int i = j + 1; i < 6; i++) b[j] -= a[i][j] * b[i];
}

/* Andrews' squeezer: K1 with K2, K3, K5 with K4, and K7 with K6, whose tips are at one point. The
   states are beta, theta, gamma, delta, phi, epsilon, omega, and their rates. */
INLINE void squeezer(double t, const double *restrict x, double *restrict dx) {
  const double *q = x, *v = x + 7, pace = SQUEEZER_PACE;
  (void)t;
  const vector held = turned(cos(q[2]), sin(q[2]), HOLD);
  const vector reach = {FIXED.x - FOOT_B.x - held.x, FIXED.y - FOOT_B.y - held.y};
  const double length = sqrt(reach.x * reach.x + reach.y * reach.y);
  const double pull = STIFFNESS * (length - FREE_LENGTH) / length;
  const double moment = pull * (held.x * reach.y - held.y * reach.x);
  const arm a = pair(K1, K2, (vector){0.0, 0.0}, ON_K1, TIP_K2, q, v, DRIVE, 0.0);
  const arm others[3] = {
      single(K3, FOOT_B, TIP_K3, q[2], v[2], moment, 0.0),
      pair(K5, K4, FOOT_A, ON_K5, TIP_K4, q + 3, v + 3, 0.0, 0.0),
      pair(K7, K6, FOOT_A, ON_K7, TIP_K6, q + 5, v + 5, 0.0, 0.0),
  };
  double A[6][6], f[6], fx = 0.0, fy = 0.0;
#pragma GCC unroll 3
  for (int i = 0; i < 3; i++) {
    const arm *b = &others[i];
    f[2 * i] = asked(a.tip.x, b->tip.x, a.velocity.x, b->velocity.x, a.acceleration.x,
                     b->acceleration.x, pace);
    f[2 * i + 1] = asked(a.tip.y, b->tip.y, a.velocity.y, b->velocity.y, a.acceleration.y,
                         b->acceleration.y, pace);
#pragma GCC unroll 3
    for (int j = 0; j <= i; j++) {
      A[2 * i][2 * j] = a.xx + (i == j ? b->xx : 0.0);
      A[2 * i + 1][2 * j] = a.xy + (i == j ? b->xy : 0.0);
      A[2 * i][2 * j + 1] = a.xy;
      A[2 * i + 1][2 * j + 1] = a.yy + (i == j ? b->yy : 0.0);
    }
  }
  solve(A, f);
  for (int i = 0; i < 3; i++) fx += f[2 * i], fy += f[2 * i + 1];
  for (int i = 0; i < 7; i++) dx[i] = v[i];
  for (int i = 0; i < 2; i++) dx[7 + i] = a.a[i] + a.per_x[i] * fx + a.per_y[i] * fy;
  dx[9] = others[0].a[0] - others[0].per_x[0] * f[0] - others[0].per_y[0] * f[1];
  for (int i = 0; i < 2; i++) {
    const arm *b = &others[1], *c = &others[2];
    dx[10 + i] = b->a[i] - b->per_x[i] * f[2] - b->per_y[i] * f[3];
    dx[12 + i] = c->a[i] - c->per_x[i] * f[4] - c->per_y[i] * f[5];
  }
}

WORKLOAD(four_bar, 6)
WORKLOAD(squeezer, 14)
