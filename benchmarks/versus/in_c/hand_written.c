/* The right-hand sides of some workloads as one would write them by hand, for the loops in
   runge_kutta.h. All constants of the workloads (PID_*, CHAIN_*, LINKS_*, LINKS3D_*) are defined by
   the compiler's command line. */

#include "runge_kutta.h"

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

/* Five links ----------------------------------------------------------------------------------- */

#define LINKS 5

/* Solve a x = b for a symmetric positive definite matrix, of which the lower triangle is given. */
INLINE void solve(double a[LINKS][LINKS], double *restrict b) {
  double pivot[LINKS];
  for (int j = 0; j < LINKS; j++) {
    double row[LINKS], d = a[j][j];
    for (int k = 0; k < j; k++) {
      row[k] = a[j][k] * pivot[k];
      d -= a[j][k] * row[k];
    }
    pivot[j] = d;
    const double inverse = 1.0 / d;
    for (int i = j + 1; i < LINKS; i++) {
      double entry = a[i][j];
      for (int k = 0; k < j; k++) entry -= a[i][k] * row[k];
      a[i][j] = entry * inverse;
      b[i] -= a[i][j] * b[j];
    }
    b[j] *= inverse;
  }
  for (int j = LINKS - 1; j >= 0; j--)
    for (int i = j + 1; i < LINKS; i++) b[j] -= a[i][j] * b[i];
}

/* In a plane: Lagrange's equations for the angles of the rods against the vertical, whose mass matrix
   has the cosines of their differences. */
INLINE void links(double t, const double *restrict x, double *restrict dx) {
  const double ml2 = LINKS_M * LINKS_LENGTH * LINKS_LENGTH;
  const double moment = ml2 / 12.0 + LINKS_M * LINKS_RADIUS * LINKS_RADIUS / 4.0;
  double s[LINKS], c[LINKS], squared[LINKS], a[LINKS][LINKS], b[LINKS], angle = 0.0, rate = 0.0;
  (void)t;
  for (int i = 0; i < LINKS; i++) {
    angle += x[i];
    rate += x[LINKS + i];
    s[i] = sin(angle);
    c[i] = cos(angle);
    squared[i] = rate * rate;
    b[i] = -LINKS_K * x[i] - LINKS_D * x[LINKS + i] -
           LINKS_M * LINKS_G * LINKS_LENGTH * (LINKS - i - 0.5) * s[i];
    a[i][i] = ml2 * (LINKS - i - 0.75) + moment;
  }
  for (int i = 0; i < LINKS - 1; i++) b[i] += LINKS_K * x[i + 1] + LINKS_D * x[LINKS + i + 1];
  for (int i = 0; i < LINKS; i++)
    for (int j = i + 1; j < LINKS; j++) {
      const double weight = ml2 * (LINKS - j - 0.5);
      const double sine = weight * (s[i] * c[j] - c[i] * s[j]);
      a[j][i] = weight * (c[i] * c[j] + s[i] * s[j]);
      b[i] -= sine * squared[j];
      b[j] += sine * squared[i];
    }
  solve(a, b);
  for (int i = 0; i < LINKS; i++) {
    dx[i] = x[LINKS + i];
    dx[LINKS + i] = b[i] - (i ? b[i - 1] : 0.0);
  }
}

typedef struct {
  double x, y, z;
} vector;

/* From the frame of rod i, which turns about y for an even i and about x for an odd one, to the frame
   of the rod before. */
INLINE vector inwards(int i, double c, double s, vector v) {
  if (i & 1) return (vector){v.x, c * v.y - s * v.z, s * v.y + c * v.z};
  return (vector){c * v.x + s * v.z, v.y, c * v.z - s * v.x};
}

INLINE vector outwards(int i, double c, double s, vector v) { return inwards(i, c, -s, v); }

INLINE double hinge(int i, vector v) { return i & 1 ? v.x : v.y; }

/* In space: from the world outwards, forces and moments that keep the rates as they are, by Newton
   and Euler; then inwards, these and the inertia of all rods from a joint on, which gives the mass
   matrix. All in the frames of the rods, where the centers of mass are on the z axis. Inlining so
   long a function for every stage of a step gains nothing, and takes the compiler long. */
static __attribute__((noinline)) void links3d(double t, const double *restrict x, double *restrict dx) {
  const double m = LINKS3D_M, length = LINKS3D_LENGTH, half = 0.5 * length;
  const double along = 0.5 * m * LINKS3D_RADIUS * LINKS3D_RADIUS;
  const double across = m * length * length / 12.0 + 0.5 * along;
  double c[LINKS], s[LINKS], a[LINKS][LINKS], b[LINKS];
  vector force[LINKS], moment[LINKS];
  vector w = {0.0, 0.0, 0.0}, alpha = {0.0, 0.0, 0.0}, acceleration = {0.0, 0.0, LINKS3D_G};
  (void)t;
  for (int i = 0; i < LINKS; i++) {
    c[i] = cos(x[i]);
    s[i] = sin(x[i]);
  }
#pragma GCC unroll 5
  for (int i = 0; i < LINKS; i++) {
    const double rate = x[LINKS + i];
    w = outwards(i, c[i], s[i], w);
    alpha = outwards(i, c[i], s[i], alpha);
    acceleration = outwards(i, c[i], s[i], acceleration);
    if (i & 1) {
      alpha.y += w.z * rate;
      alpha.z -= w.y * rate;
      w.x += rate;
    } else {
      alpha.x -= w.z * rate;
      alpha.z += w.x * rate;
      w.y += rate;
    }
    const vector bend = {-alpha.y - w.x * w.z, alpha.x - w.y * w.z, w.x * w.x + w.y * w.y};
    force[i].x = m * (acceleration.x + half * bend.x);
    force[i].y = m * (acceleration.y + half * bend.y);
    force[i].z = m * (acceleration.z + half * bend.z);
    moment[i].x = across * alpha.x - (across - along) * w.y * w.z + half * force[i].y;
    moment[i].y = across * alpha.y + (across - along) * w.x * w.z - half * force[i].x;
    moment[i].z = along * alpha.z;
    acceleration.x += length * bend.x;
    acceleration.y += length * bend.y;
    acceleration.z += length * bend.z;
  }
  /* Mass, first moment and moments of inertia about the joint of the rods from there on. */
  double mass = 0.0, xx = 0.0, yy = 0.0, zz = 0.0, xy = 0.0, xz = 0.0, yz = 0.0;
  vector first = {0.0, 0.0, 0.0}, f = {0.0, 0.0, 0.0}, n = {0.0, 0.0, 0.0};
#pragma GCC unroll 5
  for (int i = LINKS - 1; i >= 0; i--) {
    if (i < LINKS - 1) {
      const double cj = c[i + 1], sj = s[i + 1], cc = cj * cj, ss = sj * sj, cs = cj * sj;
      f = inwards(i + 1, cj, sj, f);
      n = inwards(i + 1, cj, sj, n);
      n.x += length * f.y;
      n.y -= length * f.x;
      first = inwards(i + 1, cj, sj, first);
      if ((i + 1) & 1) {
        const vector across_x = inwards(i + 1, cj, sj, (vector){0.0, xy, xz});
        const double y = cc * yy - 2.0 * cs * yz + ss * zz, z = ss * yy + 2.0 * cs * yz + cc * zz;
        yz = cs * (yy - zz) + (cc - ss) * yz;
        yy = y, zz = z, xy = across_x.y, xz = across_x.z;
      } else {
        const vector across_y = inwards(i + 1, cj, sj, (vector){xy, 0.0, yz});
        const double u = cc * xx + 2.0 * cs * xz + ss * zz, z = ss * xx - 2.0 * cs * xz + cc * zz;
        xz = cs * (zz - xx) + (cc - ss) * xz;
        xx = u, zz = z, xy = across_y.x, yz = across_y.z;
      }
      const double moved = mass * length * length - 2.0 * length * first.z;
      xx += moved;
      yy += moved;
      xz += length * first.x;
      yz += length * first.y;
      first.z -= length * mass;
    }
    f.x += force[i].x, f.y += force[i].y, f.z += force[i].z;
    n.x += moment[i].x, n.y += moment[i].y, n.z += moment[i].z;
    xx += across + m * half * half;
    yy += across + m * half * half;
    zz += along;
    first.z -= m * half;
    mass += m;
    b[i] = -LINKS3D_K * x[i] - LINKS3D_D * x[LINKS + i] - hinge(i, n);
    /* The momentum of a unit rate about the joint, seen from one joint after the other. */
    vector angular = i & 1 ? (vector){xx, xy, xz} : (vector){xy, yy, yz};
    vector linear = i & 1 ? (vector){0.0, -first.z, first.y} : (vector){first.z, 0.0, -first.x};
    a[i][i] = hinge(i, angular);
#pragma GCC unroll 5
    for (int j = i; j > 0; j--) {
      angular = inwards(j, c[j], s[j], angular);
      linear = inwards(j, c[j], s[j], linear);
      angular.x += length * linear.y;
      angular.y -= length * linear.x;
      a[i][j - 1] = hinge(j - 1, angular);
    }
  }
  solve(a, b);
  for (int i = 0; i < LINKS; i++) {
    dx[i] = x[LINKS + i];
    dx[LINKS + i] = b[i];
  }
}

/* What is called from outside ------------------------------------------------------------------ */

WORKLOAD(pid, 4)
WORKLOAD(chain, 2 * CHAIN_COUNT)
WORKLOAD(links, 2 * LINKS)
WORKLOAD(links3d, 2 * LINKS)
