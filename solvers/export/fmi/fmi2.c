/* Functions of version 2.0 of the standard. */

typedef struct {
    void (*logger)(void *, const char *, int, const char *, const char *, ...);
    void *(*allocate)(size_t, size_t);
    void (*release)(void *);
    void (*finished)(void *, int);
    void *environment;
} callbacks2;
typedef struct {
    int again, terminate, rescaled, moved, has_next;
    double next;
} events2;
typedef void (*logger2)(void *, const char *, int, const char *, const char *, ...);

static void tell(instance *s, int status, const char *text) {
    if (s->logger != NULL)
        ((logger2)s->logger)(s->environment, s->name, status,
                             status == DISCARD ? "logStatusDiscard" : "logStatusError", "%s", text);
}

FMI_OF(const char *, GetTypesPlatform)(void) { return "default"; }
FMI_OF(const char *, GetVersion)(void) { return "2.0"; }
FMI(SetDebugLogging)(void *c, int on, size_t n, const char *const categories[]) {
    return (void)c, (void)on, (void)n, (void)categories, OK; /* errors are always logged */
}

FMI_OF(void *, Instantiate)(const char *name, int type, const char *guid, const char *resources,
                            const callbacks2 *given, int visible, int talks) {
    (void)resources, (void)visible, (void)talks;
    instance *s = (type == 0 ? HAS_MODEL_EXCHANGE : HAS_CO_SIMULATION) ? create(name, guid) : NULL;
    if (s == NULL && given != NULL && given->logger != NULL)
        given->logger(given->environment, name, ERROR, "logStatusError",
                      "Cannot instantiate '" TITLE "': another guid or kind is needed");
    if (s != NULL && given != NULL) {
        s->logger = (function)given->logger;
        s->environment = given->environment;
    }
    return s;
}

FMI(SetupExperiment)(void *c, int has_tolerance, double tolerance, double begin, int has_end,
                     double end) {
    (void)has_end, (void)end;
    if (has_tolerance) ((instance *)c)->now.tolerance = tolerance;
    return set_time(c, begin);
}
FMI(EnterInitializationMode)(void *c) { return (void)c, OK; }

FMI(GetReal)(void *c, REFS, double v[]) { return get_numbers(c, r, n, v); }
FMI(SetReal)(void *c, REFS, const double v[]) { return set_numbers(c, r, n, v); }

#define NONE(name, type)                                                                    \
    FMI(name)(void *c, REFS, type v[]) {                                                    \
        return (void)r, (void)v, n == 0 ? OK : refuse(c, "All variables are of type Real"); \
    }
NONE(GetInteger, int)
NONE(SetInteger, const int)
NONE(GetBoolean, int)
NONE(SetBoolean, const int)
NONE(GetString, const char *)
NONE(SetString, const char *const)

FMI(GetDirectionalDerivative)(void *c, const uint32_t unknowns[], size_t rows,
                              const uint32_t knowns[], size_t columns, const double seed[],
                              double result[]) {
    return products(c, unknowns, rows, knowns, columns, seed, result, false);
}

/* Model Exchange ------------------------------------------------------------------------- */

FMI(NewDiscreteStates)(void *c, events2 *info) {
    instance *s = c;
    bool moved = false;
    int status = handle(s, &moved);
    double next = MODEL(next_time)(&s->now.m);
    *info = (events2){0, s->now.ended, 0, moved, isfinite(next) != 0, next};
    return status;
}

/* Co-Simulation -------------------------------------------------------------------------- */

FMI(DoStep)(void *c, double time, double step, int settled) {
    int status = advance(c, time + step);
    return (void)settled, ((instance *)c)->now.ended ? DISCARD : status;
}
FMI(CancelStep)(void *c) { return refuse(c, "No step is under way"); }
FMI(SetRealInputDerivatives)(void *c, REFS, const int o[], const double v[]) {
    return (void)r, (void)n, (void)o, (void)v, refuse(c, "Inputs are constant in each step");
}
FMI(GetRealOutputDerivatives)(void *c, REFS, const int o[], double v[]) {
    return (void)r, (void)n, (void)o, (void)v, refuse(c, "There are no derivatives of outputs");
}
FMI(GetRealStatus)(void *c, int kind, double *value) {
    if (kind == 2) *value = MODEL(time)(&((instance *)c)->now.m); /* the last successful time */
    return kind == 2 ? OK : DISCARD;
}
FMI(GetBooleanStatus)(void *c, int kind, int *value) {
    if (kind == 3) *value = ((instance *)c)->now.ended; /* terminated */
    return kind == 3 ? OK : DISCARD;
}
#define NO_STATUS(name, type) \
    FMI(name)(void *c, int kind, type *value) { return (void)c, (void)kind, (void)value, DISCARD; }
NO_STATUS(GetStatus, int)
NO_STATUS(GetIntegerStatus, int)
NO_STATUS(GetStringStatus, const char *)
