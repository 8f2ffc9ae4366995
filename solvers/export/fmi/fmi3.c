/* Functions of version 3.0 of the standard. */

typedef void (*logger3)(void *, int, const char *, const char *);
typedef void (*intermediate3)(void *, double, bool, bool, bool, bool, bool *, double *);

static void tell(instance *s, int status, const char *text) {
    const char *category = status == DISCARD ? "logStatusDiscard" : "logStatusError";
    if (s->logger != NULL) ((logger3)s->logger)(s->environment, status, category, text);
}

#define BEGIN const char *name, const char *token, const char *resources, bool visible, bool talks
FMI_OF(void *, InstantiateModelExchange)(BEGIN, void *environment, logger3 log) {
    return create(HAS_MODEL_EXCHANGE, name, token, environment, (function)log);
}
FMI_OF(void *, InstantiateCoSimulation)(BEGIN, bool has_events, bool may_return, const uint32_t r[],
                                        size_t n, void *environment, logger3 log,
                                        intermediate3 intermediate) {
    bool can = HAS_CO_SIMULATION && !has_events;
    instance *s = create(can, name, token, environment, (function)log);
    if (s != NULL) s->intermediate = (function)intermediate;
    if (s != NULL) s->may_return = may_return;
    return s;
}
FMI_OF(void *, InstantiateScheduledExecution)(BEGIN, void *environment, logger3 log, function update,
                                              function lock, function unlock) {
    return create(false, name, token, environment, (function)log);
}
ANSWER(EnterConfigurationMode, OK, void *c)
ANSWER(ExitConfigurationMode, OK, void *c)

static size_t length(const uint32_t *references, size_t count) {
    size_t total = 0;
    for (size_t r = 0; r < count; r++)
        if (references[r] < COUNT) total += (size_t)VARIABLES[references[r]].size;
    return total;
}

#define FITTING(numbers) (nv == length(r, n) ? numbers : refuse(c, "There are %zu numbers", nv))
ANSWER(GetFloat64, FITTING(get_numbers(c, r, n, v)), REFS, double v[], size_t nv)
ANSWER(SetFloat64, FITTING(set_numbers(c, r, n, v)), REFS, const double v[], size_t nv)

#define NONE (n == 0 ? OK : refuse(c, "All variables are of type Float64"))
#define NO_VARIABLES(kind, type)                             \
    ANSWER(Get##kind, NONE, REFS, type v[], size_t nv)       \
    ANSWER(Set##kind, NONE, REFS, const type v[], size_t nv)
#define NO_INTEGERS(bits)                  \
    NO_VARIABLES(Int##bits, int##bits##_t) \
    NO_VARIABLES(UInt##bits, uint##bits##_t)
NO_INTEGERS(8)
NO_INTEGERS(16)
NO_INTEGERS(32)
NO_INTEGERS(64)
NO_VARIABLES(Float32, float)
NO_VARIABLES(Boolean, bool)
NO_VARIABLES(String, char *)
ANSWER(GetBinary, NONE, REFS, size_t sizes[], const uint8_t *v[], size_t nv)
ANSWER(SetBinary, NONE, REFS, const size_t sizes[], const uint8_t *const v[], size_t nv)
/* There are no clocks. */
ANSWER(GetClock, NONE, REFS, bool v[])
ANSWER(SetClock, NONE, REFS, const bool v[])
ANSWER(GetShiftDecimal, NONE, REFS, double v[])
ANSWER(SetShiftDecimal, NONE, REFS, const double v[])
ANSWER(SetIntervalDecimal, NONE, REFS, const double v[])
ANSWER(GetIntervalDecimal, NONE, REFS, double v[], int w[])
ANSWER(GetShiftFraction, NONE, REFS, uint64_t v[], uint64_t w[])
ANSWER(SetShiftFraction, NONE, REFS, const uint64_t v[], const uint64_t w[])
ANSWER(SetIntervalFraction, NONE, REFS, const uint64_t v[], const uint64_t w[])
ANSWER(GetIntervalFraction, NONE, REFS, uint64_t v[], uint64_t w[], int q[])
ANSWER(ActivateModelPartition, refuse(c, "There are no clocks"), void *c, uint32_t r, double time)

#define DESCRIBED refuse(c, "The dependencies are in the model description")
ANSWER(GetNumberOfVariableDependencies, DESCRIBED, void *c, uint32_t r, size_t *n)
ANSWER(GetVariableDependencies, DESCRIBED, void *c, uint32_t r, size_t i[], uint32_t v[],
       size_t j[], int kinds[], size_t n)

#define PRODUCTS(name, inner, outer, is_adjoint)                                               \
    FMI(name)(REFS, const uint32_t knowns[], size_t columns, const double seed[], size_t size, \
              double result[], size_t count) {                                                 \
        if (inner != length(knowns, columns) || outer != length(r, n))                         \
            return refuse(c, "Seed and result do not fit the variables");                      \
        return products(c, r, n, knowns, columns, seed, result, is_adjoint);                   \
    }
PRODUCTS(GetDirectionalDerivative, size, count, false)
PRODUCTS(GetAdjointDerivative, count, size, true)

/* Model Exchange ------------------------------------------------------------------------- */

ANSWER(EvaluateDiscreteStates, OK, void *c)
FMI(UpdateDiscreteStates)(void *c, bool *again, bool *terminate, bool *rescaled, bool *moved,
                          bool *has_next, double *next) {
    instance *s = c;
    int status = handle(s, moved);
    *again = *rescaled = false;
    *terminate = s->now.ended;
    *next = MODEL(next_time)(&s->now.m);
    *has_next = isfinite(*next) != 0;
    return status;
}
ANSWER(GetNumberOfEventIndicators, (*n = NZ, OK), void *c, size_t *n)
ANSWER(GetNumberOfContinuousStates, (*n = NX, OK), void *c, size_t *n)

/* Co-Simulation -------------------------------------------------------------------------- */

ANSWER(EnterStepMode, OK, void *c)
ANSWER(GetOutputDerivatives, refuse(c, "No derivatives of outputs"),
       REFS, const int32_t o[], double v[], size_t nv)

FMI(DoStep)(void *c, double time, double step, bool settled, bool *event, bool *terminate,
            bool *early, double *last) {
    instance *s = c;
    double end = time + step;
    int status = OK;
    MODEL(pause)(&s->now.m, s->intermediate != NULL);
    do { /* to the next instant at which a tool may look into the step */
        bool wanted = false;
        double earliest = end;
        status = advance(s, end);
        *last = MODEL(time)(&s->now.m);
        if (status == OK && s->intermediate != NULL)
            ((intermediate3)s->intermediate)(s->environment, *last, false, true, true,
                                             s->may_return && *last < end, &wanted, &earliest);
        if (wanted && s->may_return) end = fmin(end, fmax(earliest, *last));
    } while (status == OK && !s->now.ended && *last < end);
    *event = false;
    *terminate = s->now.ended;
    *early = status == OK && *last < time + step;
    return status;
}
