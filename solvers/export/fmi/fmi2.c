/* Functions of version 2.0 of the standard. */

typedef void (*logger2)(void *, const char *, int, const char *, const char *, ...);
typedef struct {
    logger2 logger;
    void *(*allocate)(size_t, size_t);
    void (*release)(void *);
    void (*finished)(void *, int);
    void *environment;
} callbacks2;
typedef struct {
    int again, terminate, rescaled, moved, has_next;
    double next;
} events2;

static void tell(instance *s, int status, const char *text) {
    const char *category = status == DISCARD ? "logStatusDiscard" : "logStatusError";
    if (s->logger != NULL)
        ((logger2)s->logger)(s->environment, s->name, status, category, "%s", text);
}

FMI_OF(const char *, GetTypesPlatform)(void) { return "default"; }
FMI_OF(void *, Instantiate)(const char *name, int type, const char *guid, const char *resources,
                            const callbacks2 *given, int visible, int talks) {
    static const callbacks2 none = {0};
    const callbacks2 *known = given != NULL ? given : &none;
    bool can = type == 0 ? HAS_MODEL_EXCHANGE : HAS_CO_SIMULATION;
    return create(can, name, guid, known->environment, (function)known->logger);
}
ANSWER(EnterInitializationMode, OK, void *c)

#define NONE (n == 0 ? OK : refuse(c, "All variables are of type Real"))
ANSWER(GetReal, get_numbers(c, r, n, v), REFS, double v[])
ANSWER(SetReal, set_numbers(c, r, n, v), REFS, const double v[])
ANSWER(GetInteger, NONE, REFS, int v[])
ANSWER(SetInteger, NONE, REFS, const int v[])
ANSWER(GetBoolean, NONE, REFS, int v[])
ANSWER(SetBoolean, NONE, REFS, const int v[])
ANSWER(GetString, NONE, REFS, const char *v[])
ANSWER(SetString, NONE, REFS, const char *const v[])
ANSWER(GetDirectionalDerivative, products(c, r, n, knowns, columns, seed, result, false),
       REFS, const uint32_t knowns[], size_t columns, const double seed[], double result[])

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
    return ((instance *)c)->now.ended ? DISCARD : status;
}
ANSWER(CancelStep, refuse(c, "No step is under way"), void *c)
ANSWER(SetRealInputDerivatives, refuse(c, "Inputs are constant in each step"),
       REFS, const int o[], const double v[])
ANSWER(GetRealOutputDerivatives, refuse(c, "There are no derivatives of outputs"),
       REFS, const int o[], double v[])
FMI(GetRealStatus)(void *c, int kind, double *value) {
    if (kind == 2) *value = MODEL(time)(&((instance *)c)->now.m); /* the last successful time */
    return kind == 2 ? OK : DISCARD;
}
FMI(GetBooleanStatus)(void *c, int kind, int *value) {
    if (kind == 3) *value = ((instance *)c)->now.ended; /* terminated */
    return kind == 3 ? OK : DISCARD;
}
ANSWER(GetStatus, DISCARD, void *c, int kind, int *value)
ANSWER(GetIntegerStatus, DISCARD, void *c, int kind, int *value)
ANSWER(GetStringStatus, DISCARD, void *c, int kind, const char **value)
