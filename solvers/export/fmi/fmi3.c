/* Functions of version 3.0 of the standard. */

typedef void (*logger3)(void *, int, const char *, const char *);
typedef void (*intermediate3)(void *, double, bool, bool, bool, bool, bool *, double *);

static void tell(instance *s, int status, const char *text) {
    const char *category = status == DISCARD ? "logStatusDiscard" : "logStatusError";
    if (s->logger != NULL) ((logger3)s->logger)(s->environment, status, category, text);
}

FMI_OF(const char *, GetVersion)(void) { return "3.0"; }
FMI(SetDebugLogging)(void *c, bool on, size_t n, const char *const categories[]) {
    return (void)c, (void)on, (void)n, (void)categories, OK; /* errors are always logged */
}

static instance *create3(const char *name, const char *token, bool can, void *environment,
                         logger3 log) {
    instance *s = can ? create(name, token) : NULL;
    if (s == NULL && log != NULL)
        log(environment, ERROR, "logStatusError",
            "Cannot instantiate '" TITLE "': expected its instantiation token, and a kind that it has");
    if (s == NULL) return NULL;
    s->environment = environment;
    s->logger = (function)log;
    return s;
}

#define BEGIN const char *name, const char *token, const char *resources, bool visible, bool talks
FMI_OF(void *, InstantiateModelExchange)(BEGIN, void *environment, logger3 log) {
    (void)resources, (void)visible, (void)talks;
    return create3(name, token, HAS_MODEL_EXCHANGE, environment, log);
}
FMI_OF(void *, InstantiateCoSimulation)(BEGIN, bool has_events, bool may_return, REFS,
                                        void *environment, logger3 log, intermediate3 intermediate) {
    (void)resources, (void)visible, (void)talks, (void)r, (void)n;
    instance *s = create3(name, token, HAS_CO_SIMULATION && !has_events, environment, log);
    if (s != NULL) s->intermediate = (function)intermediate;
    if (s != NULL) s->may_return = may_return;
    return s;
}
FMI_OF(void *, InstantiateScheduledExecution)(BEGIN, void *environment, logger3 log, function update,
                                              function lock, function unlock) {
    (void)resources, (void)visible, (void)talks, (void)update, (void)lock, (void)unlock;
    return create3(name, token, false, environment, log);
}

FMI(EnterInitializationMode)(void *c, bool has_tolerance, double tolerance, double begin,
                             bool has_end, double end) {
    (void)has_end, (void)end;
    if (has_tolerance) ((instance *)c)->now.tolerance = tolerance;
    return set_time(c, begin);
}
FMI(EnterConfigurationMode)(void *c) { return (void)c, OK; }
FMI(ExitConfigurationMode)(void *c) { return (void)c, OK; }

static size_t length(const uint32_t *references, size_t count) {
    size_t total = 0;
    for (size_t r = 0; r < count; r++)
        if (references[r] < COUNT) total += (size_t)VARIABLES[references[r]].size;
    return total;
}

FMI(GetFloat64)(void *c, REFS, double v[], size_t nv) {
    return nv == length(r, n) ? get_numbers(c, r, n, v) : refuse(c, "There are %zu numbers", nv);
}
FMI(SetFloat64)(void *c, REFS, const double v[], size_t nv) {
    return nv == length(r, n) ? set_numbers(c, r, n, v) : refuse(c, "There are %zu numbers", nv);
}

#define NONE (n == 0 ? OK : refuse(c, "All variables are of type Float64"))
#define NO_VARIABLES(kind, type)                                                                      \
    FMI(Get##kind)(void *c, REFS, type v[], size_t nv) { return (void)r, (void)v, (void)nv, NONE; }   \
    FMI(Set##kind)(void *c, REFS, const type v[], size_t nv) { return (void)r, (void)v, (void)nv, NONE; }
NO_VARIABLES(Float32, float)
NO_VARIABLES(Int8, int8_t)
NO_VARIABLES(UInt8, uint8_t)
NO_VARIABLES(Int16, int16_t)
NO_VARIABLES(UInt16, uint16_t)
NO_VARIABLES(Int32, int32_t)
NO_VARIABLES(UInt32, uint32_t)
NO_VARIABLES(Int64, int64_t)
NO_VARIABLES(UInt64, uint64_t)
NO_VARIABLES(Boolean, bool)
NO_VARIABLES(String, char *)
#define NO_BINARIES(name, type, of_size)                                  \
    FMI(name)(void *c, REFS, of_size sizes[], type v[], size_t nv) {      \
        return (void)r, (void)sizes, (void)v, (void)nv, NONE;             \
    }
NO_BINARIES(GetBinary, const uint8_t *, size_t)
NO_BINARIES(SetBinary, const uint8_t *const, const size_t)
/* There are no clocks. */
#define NO_CLOCKS(name, type) \
    FMI(name)(void *c, REFS, type v[]) { return (void)r, (void)v, NONE; }
#define NO_CLOCKS_2(name, first, second)                       \
    FMI(name)(void *c, REFS, first v[], second w[]) {          \
        return (void)r, (void)v, (void)w, NONE;                \
    }
NO_CLOCKS(GetClock, bool)
NO_CLOCKS(SetClock, const bool)
NO_CLOCKS(GetShiftDecimal, double)
NO_CLOCKS(SetShiftDecimal, const double)
NO_CLOCKS(SetIntervalDecimal, const double)
NO_CLOCKS_2(GetIntervalDecimal, double, int)
NO_CLOCKS_2(GetShiftFraction, uint64_t, uint64_t)
NO_CLOCKS_2(SetShiftFraction, const uint64_t, const uint64_t)
NO_CLOCKS_2(SetIntervalFraction, const uint64_t, const uint64_t)
FMI(GetIntervalFraction)(void *c, REFS, uint64_t v[], uint64_t w[], int q[]) {
    return (void)r, (void)v, (void)w, (void)q, NONE;
}
FMI(ActivateModelPartition)(void *c, uint32_t r, double time) {
    return (void)r, (void)time, refuse(c, "There are no clocks");
}

FMI(GetNumberOfVariableDependencies)(void *c, uint32_t r, size_t *n) {
    return (void)r, (void)n, refuse(c, "The dependencies are in the model description");
}
FMI(GetVariableDependencies)(void *c, uint32_t r, size_t i[], uint32_t v[], size_t j[], int kinds[],
                             size_t n) {
    (void)r, (void)i, (void)v, (void)j, (void)kinds, (void)n;
    return refuse(c, "The dependencies are in the model description");
}

#define PRODUCTS(name, is_adjoint)                                                            \
    FMI(name)(void *c, const uint32_t unknowns[], size_t rows, const uint32_t knowns[],       \
              size_t columns, const double seed[], size_t n, double result[], size_t m) {     \
        if ((is_adjoint ? m : n) != length(knowns, columns) ||                                \
            (is_adjoint ? n : m) != length(unknowns, rows))                                   \
            return refuse(c, "Seed and result do not fit the variables");                     \
        return products(c, unknowns, rows, knowns, columns, seed, result, is_adjoint);        \
    }
PRODUCTS(GetDirectionalDerivative, false)
PRODUCTS(GetAdjointDerivative, true)

/* Model Exchange ------------------------------------------------------------------------- */

FMI(EvaluateDiscreteStates)(void *c) { return (void)c, OK; }
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
FMI(GetNumberOfEventIndicators)(void *c, size_t *n) { return (void)c, *n = NZ, OK; }
FMI(GetNumberOfContinuousStates)(void *c, size_t *n) { return (void)c, *n = NX, OK; }

/* Co-Simulation -------------------------------------------------------------------------- */

FMI(EnterStepMode)(void *c) { return (void)c, OK; }
FMI(GetOutputDerivatives)(void *c, REFS, const int32_t o[], double v[], size_t nv) {
    return (void)r, (void)n, (void)o, (void)v, (void)nv, refuse(c, "No derivatives of outputs");
}

FMI(DoStep)(void *c, double time, double step, bool settled, bool *event, bool *terminate,
            bool *early, double *last) {
    instance *s = c;
    double end = time + step;
    int status = OK;
    (void)settled;
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
