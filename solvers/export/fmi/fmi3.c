/* Functions of version 3.0 of the standard, with its types. */

typedef void *fmi3Instance, *fmi3FMUState, *fmi3InstanceEnvironment;
typedef uint32_t fmi3ValueReference;
typedef double fmi3Float64;
typedef bool fmi3Boolean, fmi3Clock;
typedef const char *fmi3String;
typedef const uint8_t *fmi3Binary;
typedef uint8_t fmi3Byte;
typedef int fmi3Status;
typedef void (*logger3)(void *, fmi3Status, fmi3String, fmi3String);
typedef void (*intermediate3)(void *, fmi3Float64, fmi3Boolean, fmi3Boolean, fmi3Boolean,
                              fmi3Boolean, fmi3Boolean *, fmi3Float64 *);

#ifdef FMI3_FUNCTION_PREFIX
#define JOINED(prefix, name) prefix##name
#define PREFIXED(prefix, name) JOINED(prefix, name)
#define API(name) EXPORT fmi3Status PREFIXED(FMI3_FUNCTION_PREFIX, name)
#define API_OF(type, name) EXPORT type PREFIXED(FMI3_FUNCTION_PREFIX, name)
#else
#define API(name) EXPORT fmi3Status name
#define API_OF(type, name) EXPORT type name
#endif
#define REFS const fmi3ValueReference r[], size_t n

static void tell(instance *s, int status, const char *text) {
    const char *category = status == DISCARD ? "logStatusDiscard" : "logStatusError";
    if (s->logger != NULL) ((logger3)s->logger)(s->environment, status, category, text);
}

API_OF(const char *, fmi3GetVersion)(void) { return "3.0"; }

API(fmi3SetDebugLogging)(fmi3Instance c, fmi3Boolean on, size_t n, const fmi3String categories[]) {
    return (void)c, (void)on, (void)n, (void)categories, OK; /* errors are always logged */
}

static instance *create3(fmi3String name, fmi3String token, bool can, void *environment, logger3 log) {
    instance *s = can ? create(name, token) : NULL;
    if (s == NULL && log != NULL)
        log(environment, ERROR, "logStatusError",
            "Cannot instantiate '" TITLE "': expected its instantiation token, and a kind that it has");
    if (s == NULL) return NULL;
    s->environment = environment;
    s->logger = (function)log;
    return s;
}

API_OF(fmi3Instance, fmi3InstantiateModelExchange)(
    fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible, fmi3Boolean talks,
    fmi3InstanceEnvironment environment, logger3 log) {
    (void)resources, (void)visible, (void)talks;
    return create3(name, token, HAS_MODEL_EXCHANGE, environment, log);
}

API_OF(fmi3Instance, fmi3InstantiateCoSimulation)(
    fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible, fmi3Boolean talks,
    fmi3Boolean has_events, fmi3Boolean may_return, const fmi3ValueReference r[], size_t n,
    fmi3InstanceEnvironment environment, logger3 log, intermediate3 intermediate) {
    (void)resources, (void)visible, (void)talks, (void)r, (void)n;
    instance *s = create3(name, token, HAS_CO_SIMULATION && !has_events, environment, log);
    if (s != NULL) s->intermediate = (function)intermediate;
    if (s != NULL) s->may_return = may_return;
    return s;
}

API_OF(fmi3Instance, fmi3InstantiateScheduledExecution)(
    fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible, fmi3Boolean talks,
    fmi3InstanceEnvironment environment, logger3 log, function update, function lock, function unlock) {
    (void)resources, (void)visible, (void)talks, (void)update, (void)lock, (void)unlock;
    return create3(name, token, false, environment, log);
}

API_OF(void, fmi3FreeInstance)(fmi3Instance c) { free(c); }

API(fmi3EnterInitializationMode)(fmi3Instance c, fmi3Boolean has_tolerance, fmi3Float64 tolerance,
                                 fmi3Float64 begin, fmi3Boolean has_end, fmi3Float64 end) {
    (void)has_end, (void)end;
    if (has_tolerance) ((instance *)c)->now.tolerance = tolerance;
    return set_time(c, begin);
}
API(fmi3ExitInitializationMode)(fmi3Instance c) { return initialize(c); }
API(fmi3Terminate)(fmi3Instance c) { return (void)c, OK; }
API(fmi3Reset)(fmi3Instance c) { return start(c), OK; }
API(fmi3EnterEventMode)(fmi3Instance c) { return (void)c, OK; }
API(fmi3EnterConfigurationMode)(fmi3Instance c) { return (void)c, OK; }
API(fmi3ExitConfigurationMode)(fmi3Instance c) { return (void)c, OK; }

static size_t length(const uint32_t *references, size_t count) {
    size_t total = 0;
    for (size_t r = 0; r < count; r++)
        if (references[r] < COUNT) total += (size_t)VARIABLES[references[r]].size;
    return total;
}

API(fmi3GetFloat64)(fmi3Instance c, REFS, fmi3Float64 v[], size_t nv) {
    return nv == length(r, n) ? get_numbers(c, r, n, v) : refuse(c, "There are %zu numbers", nv);
}
API(fmi3SetFloat64)(fmi3Instance c, REFS, const fmi3Float64 v[], size_t nv) {
    return nv == length(r, n) ? set_numbers(c, r, n, v) : refuse(c, "There are %zu numbers", nv);
}

#define NONE (n == 0 ? OK : refuse(c, "All variables are of type Float64"))
#define NO_VARIABLES(kind, type)                                                        \
    API(fmi3Get##kind)(fmi3Instance c, REFS, type v[], size_t nv) {                     \
        return (void)r, (void)v, (void)nv, NONE;                                        \
    }                                                                                   \
    API(fmi3Set##kind)(fmi3Instance c, REFS, const type v[], size_t nv) {               \
        return (void)r, (void)v, (void)nv, NONE;                                        \
    }
NO_VARIABLES(Float32, float)
NO_VARIABLES(Int8, int8_t)
NO_VARIABLES(UInt8, uint8_t)
NO_VARIABLES(Int16, int16_t)
NO_VARIABLES(UInt16, uint16_t)
NO_VARIABLES(Int32, int32_t)
NO_VARIABLES(UInt32, uint32_t)
NO_VARIABLES(Int64, int64_t)
NO_VARIABLES(UInt64, uint64_t)
NO_VARIABLES(Boolean, fmi3Boolean)
NO_VARIABLES(String, fmi3String)
API(fmi3GetBinary)(fmi3Instance c, REFS, size_t sizes[], fmi3Binary v[], size_t nv) {
    return (void)r, (void)sizes, (void)v, (void)nv, NONE;
}
API(fmi3SetBinary)(fmi3Instance c, REFS, const size_t sizes[], const fmi3Binary v[], size_t nv) {
    return (void)r, (void)sizes, (void)v, (void)nv, NONE;
}
/* There are no clocks. */
#define NO_CLOCKS(name, type) \
    API(name)(fmi3Instance c, REFS, type v[]) { return (void)r, (void)v, NONE; }
#define NO_CLOCKS_2(name, first, second)                                  \
    API(name)(fmi3Instance c, REFS, first v[], second w[]) {              \
        return (void)r, (void)v, (void)w, NONE;                           \
    }
NO_CLOCKS(fmi3GetClock, fmi3Clock)
NO_CLOCKS(fmi3SetClock, const fmi3Clock)
NO_CLOCKS(fmi3GetShiftDecimal, fmi3Float64)
NO_CLOCKS(fmi3SetShiftDecimal, const fmi3Float64)
NO_CLOCKS(fmi3SetIntervalDecimal, const fmi3Float64)
NO_CLOCKS_2(fmi3GetIntervalDecimal, fmi3Float64, int)
NO_CLOCKS_2(fmi3GetShiftFraction, uint64_t, uint64_t)
NO_CLOCKS_2(fmi3SetShiftFraction, const uint64_t, const uint64_t)
NO_CLOCKS_2(fmi3SetIntervalFraction, const uint64_t, const uint64_t)
API(fmi3GetIntervalFraction)(fmi3Instance c, REFS, uint64_t v[], uint64_t w[], int q[]) {
    return (void)r, (void)v, (void)w, (void)q, NONE;
}
API(fmi3ActivateModelPartition)(fmi3Instance c, fmi3ValueReference r, fmi3Float64 time) {
    return (void)r, (void)time, refuse(c, "There are no clocks");
}

API(fmi3GetNumberOfVariableDependencies)(fmi3Instance c, fmi3ValueReference r, size_t *n) {
    return (void)r, (void)n, refuse(c, "The dependencies are in the model description");
}
API(fmi3GetVariableDependencies)(fmi3Instance c, fmi3ValueReference r, size_t i[],
                                 fmi3ValueReference v[], size_t j[], int kinds[], size_t n) {
    (void)r, (void)i, (void)v, (void)j, (void)kinds, (void)n;
    return refuse(c, "The dependencies are in the model description");
}

API(fmi3GetFMUState)(fmi3Instance c, fmi3FMUState *state) { return get_memory(c, state); }
API(fmi3SetFMUState)(fmi3Instance c, fmi3FMUState state) {
    return memcpy(&((instance *)c)->now, state, sizeof(memory)), OK;
}
API(fmi3FreeFMUState)(fmi3Instance c, fmi3FMUState *state) {
    return (void)c, free(*state), *state = NULL, OK;
}
API(fmi3SerializedFMUStateSize)(fmi3Instance c, fmi3FMUState state, size_t *size) {
    return (void)c, (void)state, *size = sizeof(memory), OK;
}
API(fmi3SerializeFMUState)(fmi3Instance c, fmi3FMUState state, fmi3Byte b[], size_t n) {
    return write_memory(c, state, b, n);
}
API(fmi3DeserializeFMUState)(fmi3Instance c, const fmi3Byte b[], size_t n, fmi3FMUState *state) {
    return read_memory(c, b, n, state);
}

#define PRODUCTS(name, is_adjoint)                                                            \
    API(name)(fmi3Instance c, const fmi3ValueReference unknowns[], size_t rows,               \
              const fmi3ValueReference knowns[], size_t columns, const fmi3Float64 seed[],    \
              size_t n, fmi3Float64 result[], size_t m) {                                     \
        if ((is_adjoint ? m : n) != length(knowns, columns) ||                                \
            (is_adjoint ? n : m) != length(unknowns, rows))                                   \
            return refuse(c, "Seed and result do not fit the variables");                     \
        return products(c, unknowns, rows, knowns, columns, seed, result, is_adjoint);        \
    }
PRODUCTS(fmi3GetDirectionalDerivative, false)
PRODUCTS(fmi3GetAdjointDerivative, true)

/* Model Exchange ------------------------------------------------------------------------- */

API(fmi3EvaluateDiscreteStates)(fmi3Instance c) { return (void)c, OK; }
API(fmi3UpdateDiscreteStates)(fmi3Instance c, fmi3Boolean *again, fmi3Boolean *terminate,
                              fmi3Boolean *rescaled, fmi3Boolean *moved, fmi3Boolean *has_next,
                              fmi3Float64 *next) {
    instance *s = c;
    int status = handle(s, moved);
    *again = *rescaled = false;
    *terminate = s->now.ended;
    *next = MODEL(next_time)(&s->now.m);
    *has_next = isfinite(*next) != 0;
    return status;
}
API(fmi3EnterContinuousTimeMode)(fmi3Instance c) { return (void)c, OK; }
API(fmi3CompletedIntegratorStep)(fmi3Instance c, fmi3Boolean settled, fmi3Boolean *event,
                                 fmi3Boolean *terminate) {
    (void)settled;
    *event = MODEL(look)(&((instance *)c)->now.m); /* tools enter event mode only afterwards */
    *terminate = false;
    return OK;
}
API(fmi3SetTime)(fmi3Instance c, fmi3Float64 time) { return set_time(c, time); }
API(fmi3SetContinuousStates)(fmi3Instance c, const fmi3Float64 x[], size_t n) {
    return set_states(c, x, n);
}
API(fmi3GetContinuousStateDerivatives)(fmi3Instance c, fmi3Float64 v[], size_t n) {
    return get_all(c, RATE, NX, v, n);
}
API(fmi3GetEventIndicators)(fmi3Instance c, fmi3Float64 v[], size_t n) {
    return get_all(c, INDICATOR, NZ, v, n);
}
API(fmi3GetContinuousStates)(fmi3Instance c, fmi3Float64 v[], size_t n) {
    return get_all(c, STATE, NX, v, n);
}
API(fmi3GetNominalsOfContinuousStates)(fmi3Instance c, fmi3Float64 v[], size_t n) {
    for (size_t i = 0; i < n; i++) v[i] = NOMINAL;
    return (void)c, OK;
}
API(fmi3GetNumberOfEventIndicators)(fmi3Instance c, size_t *n) { return (void)c, *n = NZ, OK; }
API(fmi3GetNumberOfContinuousStates)(fmi3Instance c, size_t *n) { return (void)c, *n = NX, OK; }

/* Co-Simulation -------------------------------------------------------------------------- */

API(fmi3EnterStepMode)(fmi3Instance c) { return (void)c, OK; }
API(fmi3GetOutputDerivatives)(fmi3Instance c, REFS, const int32_t o[], fmi3Float64 v[], size_t nv) {
    return (void)r, (void)n, (void)o, (void)v, (void)nv, refuse(c, "No derivatives of outputs");
}

API(fmi3DoStep)(fmi3Instance c, fmi3Float64 time, fmi3Float64 step, fmi3Boolean settled,
                fmi3Boolean *event, fmi3Boolean *terminate, fmi3Boolean *early, fmi3Float64 *last) {
    instance *s = c;
    double end = time + step;
    int status = OK;
    (void)settled;
    do { /* to the next instant at which a tool may look into the step */
        double stop = s->intermediate != NULL ? fmin(end, MODEL(next_time)(&s->now.m)) : end;
        bool wanted = false;
        double earliest = end;
        status = advance(s, stop);
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
