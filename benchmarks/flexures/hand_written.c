/* Planar chains of beam segments as one would write them by hand: CHAINS leaves, each of SEGMENTS
   segments, lead from the world to one body. The segments have the energy of the beam law without
   shear; bodies between segments carry the mass of both halves, and the last body its own and the
   halves next to it. The method is ESDIRK4, whose linear systems are reduced to the positions and
   then eliminated node by node, from the world to the last body.

   The compiler's command line defines CHAINS, SEGMENTS, LENGTH (of a segment), EA, EI, DAMPING (a
   time that the linear stiffness is multiplied by), GREGORY, NODE_MASS, NODE_INERTIA, the MASS, FIRST_X and
   INERTIA of the last body about its origin, FORCE_X and FORCE_Y on that origin, and OFFSET, half
   the distance between the leaves. */

#include <math.h>
#include <string.h>

#define BODIES (CHAINS * (SEGMENTS - 1) + 1)
#define Q (3 * BODIES)
#define N (2 * Q)
#define LAST (BODIES - 1)
#define INLINE static inline __attribute__((always_inline))

typedef struct {
  double q[3][3], v[3][3];
} block; /* derivatives of three forces by the positions and the velocities of a body */

typedef struct {
  block aa, ab, ba, bb;
} tangent;

/* Add the outer product s a b'. */
INLINE void outer(double m[6][6], double s, const double *a, const double *b) {
  for (int i = 0; i < 6; i++)
    for (int j = 0; j < 6; j++) m[i][j] += s * a[i] * b[j];
}

/* The forces of a segment on its two ends (x, y, angle), and if wanted their derivatives. */
INLINE void segment(const double *qa, const double *va, const double *qb, const double *vb,
                    double *fa, double *fb, double kq[6][6], double kv[6][6], int slopes) {
  const double h = LENGTH, dx = qb[0] - qa[0], dy = qb[1] - qa[1];
  const double l = sqrt(dx * dx + dy * dy), ex = dx / l, ey = dy / l;
  const double half = 0.5 * (qa[2] + qb[2]), c = cos(half), s = sin(half);
  const double nx = c * ex + s * ey, ny = c * ey - s * ex;
  const double th = qb[2] - qa[2], u = 2.0 * ny / (1.0 + nx), us = 1.0 + 0.25 * u * u;
  const double pull = l - h + h * (th * th / 24.0 + u * u / 10.0);
  const double give = h / EA + 2.0 * h * h * h / EI * (th * th / 1440.0 + u * u / 1400.0);
  const double force = pull / give;
  const double q_t = h * th / 12.0, q_u = h * u / 5.0;
  const double g_t = h * h * h / EI * th / 360.0, g_u = h * h * h / EI * u / 350.0;
  const double bt[6] = {0.0, 0.0, -1.0, 0.0, 0.0, 1.0};
  const double bl[6] = {-ex, -ey, 0.0, ex, ey, 0.0};
  const double bs[6] = {ey / l, -ex / l, -0.5, -ey / l, ex / l, -0.5};
  const double v[6] = {va[0], va[1], va[2], vb[0], vb[1], vb[2]};
  double rt = 0.0, rl = 0.0, rs = 0.0;
  for (int i = 0; i < 6; i++) rt += bt[i] * v[i], rl += bl[i] * v[i], rs += bs[i] * v[i];
  const double ct = DAMPING * EI / h, cu = DAMPING * 12.0 * EI / h, cp = DAMPING / give;
  const double ru = us * rs, drag = cp * (rl + q_t * rt + q_u * ru), v_l = force + drag;
  const double v_t = EI * th / h + v_l * q_t - 0.5 * force * force * g_t + ct * rt;
  const double v_u = 12.0 * EI * u / h + v_l * q_u - 0.5 * force * force * g_u + cu * ru;
  const double v_s = v_u * us;
  for (int i = 0; i < 3; i++) {
    fa[i] -= v_t * bt[i] + v_l * bl[i] + v_s * bs[i];
    fb[i] -= v_t * bt[i + 3] + v_l * bl[i + 3] + v_s * bs[i + 3];
  }
  if (!slopes) return;
  const double n_t = (q_t - force * g_t) / give, n_u = (q_u - force * g_u) / give;
  const double square = 0.5 * force * force * h * h * h / EI;
  const double tt = EI / h + v_l * h / 12.0 - square / 360.0 + give * n_t * n_t;
  const double uu = 12.0 * EI / h + v_l * h / 5.0 - square / 350.0 + give * n_u * n_u;
  const double tu = give * n_t * n_u;
  double bu[6], bp[6], lt[6] = {0}, su[6] = {0};
  for (int i = 0; i < 6; i++) bu[i] = us * bs[i], bp[i] = bl[i] + q_t * bt[i] + q_u * bu[i];
  memset(kq, 0, 36 * sizeof(double));
  memset(kv, 0, 36 * sizeof(double));
  outer(kq, tt, bt, bt), outer(kq, tu, bt, bu), outer(kq, tu, bu, bt), outer(kq, uu, bu, bu);
  outer(kq, n_t, bt, bl), outer(kq, n_t, bl, bt), outer(kq, n_u, bu, bl), outer(kq, n_u, bl, bu);
  outer(kq, 1.0 / give, bl, bl);
  outer(kv, ct, bt, bt), outer(kv, cu, bu, bu), outer(kv, cp, bp, bp);
  /* Curvature of the strains: of l by its direction, of the angle s by both. */
  const double across = 1.0 / l, both = 1.0 / (l * l);
  const double hl[2][2] = {{across * ey * ey, -across * ex * ey}, {-across * ex * ey, across * ex * ex}};
  const double hs[2][2] = {{2.0 * both * ex * ey, both * (ey * ey - ex * ex)},
                           {both * (ey * ey - ex * ex), -2.0 * both * ex * ey}};
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++) {
      const double m = v_l * hl[i][j] + v_s * hs[i][j];
      kq[i][j] += m, kq[i][j + 3] -= m, kq[i + 3][j] -= m, kq[i + 3][j + 3] += m;
      const double w = v[j + 3] - v[j];
      lt[i] -= hl[i][j] * w, lt[i + 3] += hl[i][j] * w;
      su[i] -= hs[i][j] * w, su[i + 3] += hs[i][j] * w;
    }
  outer(kq, 0.5 * v_u * us * u, bs, bs);
  /* Rates change with the positions, too. */
  for (int i = 0; i < 6; i++) su[i] = us * su[i] + 0.5 * us * u * rs * bs[i];
  for (int i = 0; i < 6; i++)
    lt[i] = cp * (lt[i] + h / 12.0 * rt * bt[i] + h / 5.0 * ru * bu[i] + q_u * su[i]) -
            drag / give * (g_t * bt[i] + g_u * bu[i]);
  outer(kq, 1.0, bp, lt), outer(kq, cu, bu, su);
}

/* Where the element of a chain ends: a body, or for its first segment the world. */
INLINE int body(int chain, int k) { return k == SEGMENTS ? LAST : chain * (SEGMENTS - 1) + k - 1; }

/* What a body between segments carries, next to both halves: with GREGORY the weights of that rule,
   which the ends have, too, by the constants of the command line. */
INLINE double weight(int i) {
  const int k = i % (SEGMENTS - 1) + 1, near = k < SEGMENTS - k ? k : SEGMENTS - k;
  return !GREGORY ? 1.0 : near == 1 ? 7.0 / 6.0 : near == 2 ? 23.0 / 24.0 : 1.0;
}

/* Forces on all bodies; with slopes, minus their derivatives in blocks. */
static void forces(const double *q, const double *v, double *f, tangent *t, int slopes) {
  memset(f, 0, Q * sizeof(double));
  f[3 * LAST] = FORCE_X, f[3 * LAST + 1] = FORCE_Y;
  for (int chain = 0; chain < CHAINS; chain++) {
    const double offset = CHAINS == 1 ? 0.0 : (2 * chain - 1) * OFFSET;
    for (int k = 1; k <= SEGMENTS; k++) {
      const double ground[3] = {0.0, offset, 0.0}, rest[3] = {0.0, 0.0, 0.0};
      const double *qa = k == 1 ? ground : q + 3 * body(chain, k - 1);
      const double *va = k == 1 ? rest : v + 3 * body(chain, k - 1);
      const int b = body(chain, k);
      const int arm = CHAINS > 1 && k == SEGMENTS;
      double qb[3], vb[3], fa[3] = {0}, fb[3] = {0}, kq[6][6], kv[6][6], d[2] = {0};
      memcpy(qb, q + 3 * b, sizeof qb), memcpy(vb, v + 3 * b, sizeof vb);
      if (arm) {
        d[0] = -offset * sin(qb[2]), d[1] = offset * cos(qb[2]);
        qb[0] += d[0], qb[1] += d[1], vb[0] -= vb[2] * d[1], vb[1] += vb[2] * d[0];
      }
      segment(qa, va, qb, vb, fa, fb, kq, kv, slopes);
      if (slopes && arm) {
        const double w = vb[2];
        for (int i = 0; i < 6; i++) {
          kq[i][5] += -d[1] * kq[i][3] + d[0] * kq[i][4] - w * (d[0] * kv[i][3] + d[1] * kv[i][4]);
          kv[i][5] += -d[1] * kv[i][3] + d[0] * kv[i][4];
        }
        for (int i = 0; i < 6; i++) {
          kq[5][i] += -d[1] * kq[3][i] + d[0] * kq[4][i];
          kv[5][i] += -d[1] * kv[3][i] + d[0] * kv[4][i];
        }
        kq[5][5] += d[0] * fb[0] + d[1] * fb[1];
      }
      if (arm) fb[2] += d[0] * fb[1] - d[1] * fb[0];
      for (int i = 0; i < 3; i++) {
        f[3 * b + i] += fb[i];
        if (k > 1) f[3 * body(chain, k - 1) + i] += fa[i];
      }
      if (!slopes) continue;
      tangent *here = t + chain * SEGMENTS + k - 1;
      for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
          here->aa.q[i][j] = kq[i][j], here->aa.v[i][j] = kv[i][j];
          here->ab.q[i][j] = kq[i][j + 3], here->ab.v[i][j] = kv[i][j + 3];
          here->ba.q[i][j] = kq[i + 3][j], here->ba.v[i][j] = kv[i + 3][j];
          here->bb.q[i][j] = kq[i + 3][j + 3], here->bb.v[i][j] = kv[i + 3][j + 3];
        }
    }
  }
}

/* Accelerations from forces; the last body's center is ahead of its origin. */
INLINE void accelerations(const double *q, const double *v, double *f) {
  for (int i = 0; i < LAST; i++) {
    const double mass = weight(i) * NODE_MASS, inertia = weight(i) * NODE_INERTIA;
    f[3 * i] /= mass, f[3 * i + 1] /= mass, f[3 * i + 2] /= inertia;
  }
  double *a = f + 3 * LAST;
  const double phi = q[3 * LAST + 2], w = v[3 * LAST + 2];
  const double dx = FIRST_X * cos(phi), dy = FIRST_X * sin(phi);
  const double fx = a[0] + dx * w * w, fy = a[1] + dy * w * w;
  a[2] = (a[2] - (dx * fy - dy * fx) / MASS) / (INERTIA - FIRST_X * FIRST_X / MASS);
  a[0] = (fx + dy * a[2]) / MASS, a[1] = (fy - dx * a[2]) / MASS;
}

static void rates(const double *x, double *dx) {
  memcpy(dx, x + Q, Q * sizeof(double));
  forces(x, x + Q, dx + Q, NULL, 0);
  accelerations(x, x + Q, dx + Q);
}

/* Linear systems ------------------------------------------------------------------------------- */

static struct {
  tangent t[CHAINS * SEGMENTS];
  double diagonal[BODIES][3][3]; /* factorized in place, then inverted */
  double up[BODIES][3][3], down[BODIES][3][3], spin[3][3], bend[3], scale;
} w;

INLINE int parent(int i) { return (i + 1) % (SEGMENTS - 1) == 0 ? LAST : i + 1; }

INLINE void invert(double m[3][3]) {
  double r[3][3];
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      const int a = (j + 1) % 3, b = (j + 2) % 3, c = (i + 1) % 3, d = (i + 2) % 3;
      r[i][j] = m[a][c] * m[b][d] - m[a][d] * m[b][c];
    }
  const double inverse = 1.0 / (m[0][0] * r[0][0] + m[0][1] * r[1][0] + m[0][2] * r[2][0]);
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) m[i][j] = r[i][j] * inverse;
}

INLINE void times(double out[3][3], const double a[3][3], const double b[3][3], double sign) {
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++)
      for (int k = 0; k < 3; k++) out[i][j] += sign * a[i][k] * b[k][j];
}

/* The mass of the last body, and what its forces of inertia give to the derivatives. */
static void linearize(const double *x, const double *dx) {
  double f[Q];
  forces(x, x + Q, f, w.t, 1);
  const double phi = x[3 * LAST + 2], rate = x[Q + 3 * LAST + 2];
  const double *a = dx + Q + 3 * LAST;
  const double cx = FIRST_X * cos(phi), cy = FIRST_X * sin(phi);
  const double spin[3][3] = {{MASS, 0.0, -cy}, {0.0, MASS, cx}, {-cy, cx, INERTIA}};
  memcpy(w.spin, spin, sizeof spin);
  /* of M a - (c w w, 0) by the angle, and by the rate */
  w.bend[0] = -cx * a[2] + cy * rate * rate;
  w.bend[1] = -cy * a[2] - cx * rate * rate;
  w.bend[2] = -cx * a[0] - cy * a[1];
  w.scale = 0.0;
}

static void factorize(const double *x, double scale) {
  w.scale = scale;
  memset(w.diagonal, 0, sizeof w.diagonal);
  for (int i = 0; i < LAST; i++) {
    w.diagonal[i][0][0] = w.diagonal[i][1][1] = scale * scale * weight(i) * NODE_MASS;
    w.diagonal[i][2][2] = scale * scale * weight(i) * NODE_INERTIA;
  }
  const double phi = x[3 * LAST + 2], rate = x[Q + 3 * LAST + 2];
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 3; j++) w.diagonal[LAST][i][j] = scale * scale * w.spin[i][j];
    w.diagonal[LAST][i][2] += w.bend[i];
  }
  w.diagonal[LAST][0][2] -= scale * 2.0 * rate * FIRST_X * cos(phi);
  w.diagonal[LAST][1][2] -= scale * 2.0 * rate * FIRST_X * sin(phi);
  for (int chain = 0; chain < CHAINS; chain++)
    for (int k = 1; k <= SEGMENTS; k++) {
      const tangent *t = w.t + chain * SEGMENTS + k - 1;
      const int b = body(chain, k), a = body(chain, k - 1);
      for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
          w.diagonal[b][i][j] += t->bb.q[i][j] + scale * t->bb.v[i][j];
          if (k == 1) continue;
          w.diagonal[a][i][j] += t->aa.q[i][j] + scale * t->aa.v[i][j];
          w.up[a][i][j] = t->ab.q[i][j] + scale * t->ab.v[i][j];
          w.down[a][i][j] = t->ba.q[i][j] + scale * t->ba.v[i][j];
        }
    }
  for (int i = 0; i < LAST; i++) {
    double right[3][3] = {{0}};
    invert(w.diagonal[i]);
    times(right, w.diagonal[i], w.up[i], 1.0);
    memcpy(w.up[i], right, sizeof right);
    times(w.diagonal[parent(i)], w.down[i], right, -1.0);
  }
  invert(w.diagonal[LAST]);
}

/* Solve (scale - J) k = b in place. */
static void solve(const double *x, double *restrict b) {
  double r[Q];
  const double *bq = b, *bv = b + Q;
  for (int i = 0; i < LAST; i++) {
    const double mass = weight(i) * NODE_MASS, inertia = weight(i) * NODE_INERTIA;
    r[3 * i] = mass * (bv[3 * i] + w.scale * bq[3 * i]);
    r[3 * i + 1] = mass * (bv[3 * i + 1] + w.scale * bq[3 * i + 1]);
    r[3 * i + 2] = inertia * (bv[3 * i + 2] + w.scale * bq[3 * i + 2]);
  }
  for (int i = 0; i < 3; i++) {
    r[3 * LAST + i] = 0.0;
    for (int j = 0; j < 3; j++)
      r[3 * LAST + i] += w.spin[i][j] * (bv[3 * LAST + j] + w.scale * bq[3 * LAST + j]);
  }
  const double phi = x[3 * LAST + 2], rate = x[Q + 3 * LAST + 2];
  r[3 * LAST] -= 2.0 * rate * FIRST_X * cos(phi) * bq[3 * LAST + 2];
  r[3 * LAST + 1] -= 2.0 * rate * FIRST_X * sin(phi) * bq[3 * LAST + 2];
  for (int chain = 0; chain < CHAINS; chain++)
    for (int k = 1; k <= SEGMENTS; k++) {
      const tangent *t = w.t + chain * SEGMENTS + k - 1;
      const int e = body(chain, k), a = body(chain, k - 1);
      for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
          r[3 * e + i] += t->bb.v[i][j] * bq[3 * e + j];
          if (k == 1) continue;
          r[3 * e + i] += t->ba.v[i][j] * bq[3 * a + j];
          r[3 * a + i] += t->aa.v[i][j] * bq[3 * a + j] + t->ab.v[i][j] * bq[3 * e + j];
        }
    }
  for (int i = 0; i <= LAST; i++) {
    double y[3] = {0};
    for (int j = 0; j < 3; j++)
      for (int m = 0; m < 3; m++) y[j] += w.diagonal[i][j][m] * r[3 * i + m];
    memcpy(r + 3 * i, y, sizeof y);
    if (i == LAST) break;
    for (int j = 0; j < 3; j++)
      for (int m = 0; m < 3; m++) r[3 * parent(i) + j] -= w.down[i][j][m] * y[m];
  }
  for (int i = LAST - 1; i >= 0; i--)
    for (int j = 0; j < 3; j++)
      for (int m = 0; m < 3; m++) r[3 * i + j] -= w.up[i][j][m] * r[3 * parent(i) + m];
  for (int i = 0; i < Q; i++) {
    b[Q + i] = w.scale * r[i] - b[i];
    b[i] = r[i];
  }
}

/* ESDIRK4 -------------------------------------------------------------------------------------- */

static const double GAMMA = 0.25;
static const double A[6][5] = {
    {0.0},
    {0.25},
    {0.137776, -0.055776},
    {0.14463686602698217, -0.22393190761334475, 0.4492950415863626},
    {0.09825878328356477, -0.5915442428196704, 0.8101210538282996, 0.283164405707806},
    {0.15791629516167136, 0.0, 0.18675894052400077, 0.6805652953093346, -0.27524053099500667}};
static const double G[6][5] = {
    {0.0},
    {0.5},
    {0.221776, 0.11022400000000002},
    {0.3476481927710844, 0.6058285714285715, -0.3334767641996558},
    {-0.4894449128850734, -2.744964550066534, 2.7729221944330886, 1.3114872685185186},
    {0.5798435192664625, 1.0234023276256214, -0.6503384443082556, -0.7138369212773219,
     0.7609295186934939}};
static const double E[6] = {0.0032044943984591762, 0.0, -0.0024462511366794577, -0.02148007591958727,
     0.043946868068572426, -0.02322503541076487};

static double norm(const double *e, const double *x, const double *y, double rtol, double atol) {
  double sum = 0.0;
  for (int i = 0; i < N; i++) {
    const double part = e[i] / (atol + rtol * fmax(fabs(x[i]), fabs(y[i])));
    sum += part * part;
  }
  return sqrt(sum / N);
}

INLINE void combine(const double *row, int s, const double *x, double z[6][N], double *out) {
  for (int i = 0; i < N; i++) {
    double sum = x[i];
    for (int j = 0; j < s; j++) sum += row[j] * z[j][i];
    out[i] = sum;
  }
}

/* Linear equations at y. */
static void renew(double *at, const double *y, double scale) {
  double dy[N];
  memcpy(at, y, N * sizeof(double));
  rates(at, dy);
  linearize(at, dy);
  factorize(at, scale);
}

/* Newton's iteration of a stage; returns the largest ratio, or infinity without convergence. */
static double stage(double d, const double *x, const double *base, double *restrict y,
                    double *restrict at, double rtol, double atol, double before) {
  double b[N], largest = 0.0, size = 0.0, ratio = before;
  if (before > 1e-3) ratio = 1.0, renew(at, y, d);
  for (int update = 0; update < 8; update++) {
    rates(y, b);
    for (int i = 0; i < N; i++) b[i] += d * (base[i] - y[i]);
    solve(at, b);
    for (int i = 0; i < N; i++) y[i] += b[i];
    const double previous = size;
    size = norm(b, x, y, rtol, atol);
    if (!isfinite(size)) return NAN;
    if (update == 0) {
      if (ratio * size < 1e-5) return fmin(ratio, 1e-3);
      continue;
    }
    ratio = size / previous;
    largest = fmax(largest, ratio);
    if (ratio < 1.0 && ratio * size < 0.01 * (1.0 - ratio)) return largest;
    if (ratio > 2.0 && update > 1) break;
    if (ratio > 0.2) renew(at, y, d);
  }
  return INFINITY;
}

/* One try; returns the norm of the error. */
static double attempt(double h, const double *x, const double *dx, double *restrict y, double rtol,
                      double atol) {
  static double z[6][N], at[N], base[N];
  const double d = 1.0 / (GAMMA * h);
  double ratio = 1.0, largest = 0.0;
  for (int i = 0; i < N; i++) z[0][i] = h * dx[i];
  for (int s = 1; s < 6; s++) {
    combine(A[s], s, x, z, base);
    combine(G[s], s, x, z, y);
    ratio = stage(d, x, base, y, at, rtol, atol, ratio);
    if (!isfinite(ratio)) return ratio == INFINITY ? pow(0.9 / 0.5, 4.0) : NAN;
    largest = fmax(largest, ratio);
    for (int i = 0; i < N; i++) z[s][i] = (y[i] - base[i]) / GAMMA;
  }
  for (int i = 0; i < N; i++) {
    base[i] = 0.0;
    for (int s = 0; s < 6; s++) base[i] += d * E[s] * z[s][i];
  }
  solve(at, base);
  const double error = norm(base, x, y, rtol, atol);
  return largest > 0.2 ? fmax(error, pow(0.9, 4.0)) : error;
}

/* Integrate x from zero to t_end. Begins with the step in next, and leaves there what it would go on
   with. Returns the number of steps, or -1 when they become too small. */
long run(double t_end, double *x, double rtol, double atol, double *next) {
  double dx[N], y[N], t = 0.0, h = *next;
  long steps = 0;
  rates(x, dx);
  while (t < t_end) {
    double largest = 6.0;
    for (;;) {
      *next = h;
      if (t + h > t_end) h = t_end - t;
      if (h < 1e-14 * t_end) return -1;
      const double error = attempt(h, x, dx, y, rtol, atol);
      const double factor = fmin(fmax(0.9 * pow(error, -0.25), 0.2), largest);
      if (error < 1.0) {
        t = t + h >= t_end ? t_end : t + h;
        h *= factor;
        break;
      }
      h *= isfinite(factor) ? factor : 0.2;
      largest = 1.0;
    }
    memcpy(x, y, N * sizeof(double));
    rates(x, dx);
    steps++;
  }
  *next = fmax(*next, h);
  return steps;
}

/* For the check of these equations, and for the cost of each part. */
void evaluate(const double *x, double *dx) { rates(x, dx); }

void apply_inverse(const double *x, double scale, double *b) {
  double dx[N];
  rates(x, dx);
  linearize(x, dx);
  factorize(x, scale);
  solve(x, b);
}

void repeat(long count, const double *x, double *dx) {
  for (long i = 0; i < count; i++) {
    rates(x, dx);
    __asm__ volatile("" : : "r"(x), "r"(dx) : "memory");
  }
}
