/* An FMU of FMI 2.0 for Model Exchange: x' = u - a x, y = x + 2 u, and x jumps up by 1 where it
   falls to 0.5. Without functions that get and set its state; `trouble` makes it fail. */
#include <math.h>
#include <stdlib.h>

typedef struct { double t, x, u, a, y, trouble; int n, crossed; double before; void **callbacks; } M;
typedef struct { int again, ends, nominals, values, has_next; double next; } Info;
#define API __attribute__((visibility("default")))
#define NONE(name) API int name(void) { return 3; }
#define FINE(name) API int name(void) { return 0; }

API const char *fmi2GetTypesPlatform(void) { return "default"; }
API const char *fmi2GetVersion(void) { return "2.0"; }
FINE(fmi2SetDebugLogging) FINE(fmi2SetupExperiment) FINE(fmi2EnterInitializationMode)
FINE(fmi2ExitInitializationMode) FINE(fmi2Terminate) FINE(fmi2Reset) FINE(fmi2EnterContinuousTimeMode)
NONE(fmi2GetString) NONE(fmi2SetString) NONE(fmi2SetInteger) NONE(fmi2GetBoolean) NONE(fmi2SetBoolean)
NONE(fmi2GetFMUstate) NONE(fmi2SetFMUstate) NONE(fmi2FreeFMUstate) NONE(fmi2SerializedFMUstateSize)
NONE(fmi2SerializeFMUstate) NONE(fmi2DeSerializeFMUstate) FINE(fmi2EnterEventMode)

API void *fmi2Instantiate(const char *n, int k, const char *g, const char *r, void **c, int v, int l) {
    M *m = calloc(1, sizeof *m);
    (void)n; (void)k; (void)g; (void)r; (void)v; (void)l;
    m->x = 2; m->a = 1; m->before = 1.5; m->callbacks = c;
    return m;
}
API void fmi2FreeInstance(void *m) { free(m); }
static double *at(M *m, unsigned r) { return r == 1 ? &m->x : r == 3 ? &m->u : r == 4 ? &m->a : &m->trouble; }
API int fmi2GetReal(M *m, const unsigned *r, size_t n, double *v) {
    for (size_t k = 0; k < n; k++) {
        if (m->trouble == 2 && m->t > 0.1) v[k] = NAN;
        else v[k] = r[k] == 2 ? m->u - m->a * m->x : r[k] == 5 ? m->x + 2 * m->u : *at(m, r[k]);
    }
    return 0;
}
API int fmi2SetReal(M *m, const unsigned *r, size_t n, const double *v) {
    for (size_t k = 0; k < n; k++) *at(m, r[k]) = v[k];
    return 0;
}
API int fmi2GetInteger(M *m, const unsigned *r, size_t n, int *v) {
    (void)r;
    for (size_t k = 0; k < n; k++) v[k] = m->n;
    return 0;
}
API int fmi2SetTime(M *m, double t) { m->t = t; return 0; }
API int fmi2SetContinuousStates(M *m, const double *x, size_t n) { (void)n; m->x = x[0]; return 0; }
API int fmi2GetContinuousStates(M *m, double *x, size_t n) { (void)n; x[0] = m->x; return 0; }
API int fmi2GetNominalsOfContinuousStates(M *m, double *x, size_t n) { (void)m; (void)n; x[0] = 1; return 0; }
API int fmi2GetDerivatives(M *m, double *x, size_t n) {
    typedef void (*Log)(void *, const char *, int, const char *, const char *, ...);
    (void)n;
    if (m->trouble == 1 && m->t > 0.1) abort();
    if (m->trouble == 3 && m->t > 0.1) {
        ((Log)m->callbacks[0])(m->callbacks[4], "small", 3, "error", "the %s is broken", "pump");
        return 3;
    }
    x[0] = m->u - m->a * m->x;
    return 0;
}
API int fmi2GetEventIndicators(M *m, double *z, size_t n) { (void)n; z[0] = m->x - 0.5; return 0; }
API int fmi2CompletedIntegratorStep(M *m, int no, int *event, int *ends) {
    (void)no;
    m->crossed = m->before > 0 && m->x <= 0.5; /* crossings are noted here, as many tools do */
    m->before = m->x - 0.5;
    *event = *ends = 0;
    return 0;
}
API int fmi2NewDiscreteStates(M *m, Info *i) {
    i->again = i->ends = i->nominals = i->values = i->has_next = 0;
    if (m->crossed) { m->x += 1; m->n++; m->crossed = 0; m->before = m->x - 0.5; i->values = 1; }
    return 0;
}
API int fmi2GetDirectionalDerivative(M *m, const unsigned *z, size_t nz, const unsigned *v, size_t nv,
                                     const double *dv, double *dz) {
    for (size_t i = 0; i < nz; i++) {
        dz[i] = 0;
        for (size_t k = 0; k < nv; k++)
            dz[i] += dv[k] * (z[i] == 2 ? (v[k] == 1 ? -m->a : v[k] == 3 ? 1 : 0)
                              : v[k] == 1 ? 1 : v[k] == 3 ? 2 : 0);
    }
    return 0;
}
