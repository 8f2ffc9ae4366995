/* What both versions of the standard have in common: an instance, its variables and functions. */

#if defined(__GNUC__) /* the standard says what parameters there are */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
#if defined(FMI2_FUNCTION_PREFIX)
#define PREFIX FMI2_FUNCTION_PREFIX
#elif defined(FMI3_FUNCTION_PREFIX)
#define PREFIX FMI3_FUNCTION_PREFIX
#else
#define PREFIX
#endif
#if FMI_VERSION == 2 /* with booleans of four bytes, and other names */
#define BY_VERSION(old, new) old
typedef int boolean;
#else
#define BY_VERSION(old, new) new
typedef bool boolean;
#endif

#define JOINED(a, b) a##b
#define JOIN(a, b) JOINED(a, b)
#define FMI_OF(type, name) EXPORT type JOIN(PREFIX, JOIN(BY_VERSION(fmi2, fmi3), name))
#define FMI(name) FMI_OF(int, name)
#define ANSWER(name, answer, ...) FMI(name)(__VA_ARGS__) { return answer; }
#define REFS void *c, const uint32_t r[], size_t n

enum { TIME, STATE, RATE, VALUE, SIGNAL, INDICATOR, ARRAYS }; /* arrays of numbers */
enum { OK, WARNING, DISCARD, ERROR };                         /* statuses of the standard */
enum { STATES_CHANGED = 1, ENDED = 4 }; /* flags of the events of a model */

/* All that the state of a unit consists of; copied as it is. */
typedef struct {
    char token[sizeof TOKEN];
    model m;
    double tolerance;
    double rates[NX + 1], signals[NS + 1], indicators[NZ + 1];
    bool known[ARRAYS]; /* since something changed */
    int64_t flags;      /* of the initialization, until they are told */
    bool ended;
} memory;

typedef void (*function)(void); /* a callback of any type */

typedef struct instance {
    memory now;
    char name[64];
    void *environment;
    function logger, intermediate;
    bool may_return;
} instance;

static void tell(instance *s, int status, const char *text); /* by the logger of the tool */

static int report(instance *s, int status, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    tell(s, status, text);
    return status;
}
#define refuse(s, ...) report(s, ERROR, __VA_ARGS__)

static int failed(instance *s, int64_t status, int told) {
    return report(s, told, "Cannot simulate '" TITLE "' beyond t = %.17g: %s",
                  MODEL(time)(&s->now.m), MODEL(problem)(status));
}

static void changed(instance *s) { memset(s->now.known, 0, sizeof s->now.known); }

static void start(instance *s) {
    memset(&s->now, 0, sizeof s->now);
    memcpy(s->now.token, TOKEN, sizeof TOKEN);
    s->now.tolerance = TOLERANCE;
    MODEL(reset)(&s->now.m);
}

static instance *create(bool can, const char *name, const char *token, void *environment,
                        function logger) {
    instance *s = calloc(1, sizeof *s);
    if (s == NULL) return NULL;
    (void)snprintf(s->name, sizeof s->name, "%s", name);
    s->environment = environment;
    s->logger = logger;
    start(s);
    if (can && strcmp(token, TOKEN) == 0) return s;
    tell(s, ERROR, "Cannot instantiate '" TITLE "': expected its " BY_VERSION("guid", "instantiation token")
                   ", and a kind that it has");
    free(s);
    return NULL;
}

/* Variables ------------------------------------------------------------------------------ */

static double number(instance *s, int32_t array, int32_t at) {
    memory *now = &s->now;
    bool known = now->known[array];
    now->known[array] = true;
    switch (array) {
        case TIME: return MODEL(time)(&now->m);
        case STATE: return MODEL(state)(&now->m, at);
        case VALUE: return MODEL(get)(&now->m, at);
        case RATE:
            if (!known) MODEL(derivatives)(&now->m, now->rates);
            return now->rates[at];
        case SIGNAL:
            if (!known) MODEL(signals)(&now->m, now->signals);
            return now->signals[at];
        default:
            if (!known) MODEL(witnesses)(&now->m, now->indicators);
            return now->indicators[at];
    }
}

static int get_numbers(instance *s, const uint32_t *references, size_t count, double *values) {
    for (size_t r = 0; r < count; r++) {
        if (references[r] >= COUNT) return refuse(s, "There is no variable %u", references[r]);
        const variable *v = &VARIABLES[references[r]];
        for (int32_t k = 0; k < v->size; k++) *values++ = number(s, v->array, v->at + k);
    }
    return OK;
}

static int set_numbers(instance *s, const uint32_t *references, size_t count, const double *values) {
    for (int pass = 0; pass < 2; pass++) { /* what is refused changes nothing */
        const double *next = values;
        for (size_t r = 0; r < count; r++) {
            if (references[r] >= COUNT) return refuse(s, "There is no variable %u", references[r]);
            const variable *v = &VARIABLES[references[r]];
            if (v->array != STATE && v->array != VALUE)
                return refuse(s, "Cannot set '%s': it is computed", v->name);
            for (int32_t k = 0; k < v->size; k++, next++) {
                if (!(*next >= v->lower && *next <= v->upper))
                    return refuse(s, "Cannot set '%s': expected a number from %.9g to %.9g, found %.9g",
                                  v->name, v->lower, v->upper, *next);
                if (pass == 1 && v->array == STATE) MODEL(set_state)(&s->now.m, v->at + k, *next);
                if (pass == 1 && v->array == VALUE) MODEL(set)(&s->now.m, v->at + k, *next);
            }
        }
    }
    changed(s);
    return OK;
}

static int get_all(instance *s, int32_t array, size_t count, double values[], size_t n) {
    for (size_t i = 0; i < count && i < n; i++) values[i] = number(s, array, (int32_t)i);
    return n == count ? OK : refuse(s, "There are %zu numbers, not %zu", count, n);
}

static int set_time(instance *s, double time) {
    MODEL(set_time)(&s->now.m, time);
    changed(s);
    return OK;
}

/* Events --------------------------------------------------------------------------------- */

static int initialize(instance *s) {
    int64_t flags = MODEL(initialize)(&s->now.m);
    changed(s);
    if (flags < 0) return failed(s, flags, ERROR);
    s->now.flags = flags;
    s->now.ended = (flags & ENDED) != 0;
    return OK;
}

static int handle(instance *s, bool *moved) {
    int64_t flags = MODEL(handle)(&s->now.m);
    changed(s);
    if (flags < 0) return failed(s, flags, ERROR);
    flags |= s->now.flags;
    s->now.flags = 0;
    *moved = (flags & STATES_CHANGED) != 0;
    s->now.ended = (flags & ENDED) != 0;
    return OK;
}

static int advance(instance *s, double end) {
    int64_t status = MODEL(advance)(&s->now.m, end, s->now.tolerance, 1e-3 * s->now.tolerance);
    if (status == 0) status = MODEL(settle)(&s->now.m); /* what is due at the end, too */
    changed(s);
    s->now.ended = status > 0;
    return status < 0 ? failed(s, status, DISCARD) : OK;
}

/* Derivatives ---------------------------------------------------------------------------- */

/* Products with the matrix of derivatives of unknowns by knowns: J seed, or its transpose's. */
static int products(instance *s, const uint32_t *unknowns, size_t rows, const uint32_t *knowns,
                    size_t columns, const double *seed, double *result, bool adjoint) {
    double outer[NX + NS + 1] = {0}, inner[NX + NU + 1] = {0};
    const double *taken = seed;
    for (int pass = 0; pass < 2; pass++) { /* what is given, and then what is asked for */
        bool is_known = (pass == 0) != adjoint;
        const uint32_t *references = is_known ? knowns : unknowns;
        for (size_t r = 0; r < (is_known ? columns : rows); r++) {
            if (references[r] >= COUNT) return refuse(s, "There is no variable %u", references[r]);
            const variable *v = &VARIABLES[references[r]];
            for (int32_t k = 0; k < v->size; k++) {
                int32_t place = (is_known ? v->known : v->unknown) + k;
                double *number = is_known ? inner + place : outer + place;
                if (!is_known && v->array == STATE) number = inner + v->at + k; /* shown as it is */
                else if (!is_known && v->array == VALUE) number = outer + NX + NS; /* discrete */
                else if (place < k) return refuse(s, "There are no derivatives by, or of, '%s'", v->name);
                if (pass == 0) *number += *taken++;
                else *result++ = *number;
            }
        }
        if (pass == 0 && !adjoint) MODEL(directional)(&s->now.m, inner, outer);
        if (pass == 0 && adjoint) {
            double found[NX + NU + 1] = {0};
            MODEL(adjoint)(&s->now.m, outer, found);
            for (int32_t i = 0; i < NX + NU; i++) inner[i] += found[i];
        }
    }
    return OK;
}

/* Functions that are the same in both versions, but for their names ---------------------- */

FMI_OF(const char *, GetVersion)(void) { return BY_VERSION("2.0", "3.0"); }
FMI_OF(void, FreeInstance)(void *c) { free(c); }
/* Errors are always logged. */
ANSWER(SetDebugLogging, OK, void *c, boolean on, size_t n, const char *const categories[])
FMI(BY_VERSION(SetupExperiment, EnterInitializationMode))(
    void *c, boolean has_tolerance, double tolerance, double begin, boolean has_end, double end) {
    if (has_tolerance) ((instance *)c)->now.tolerance = tolerance;
    return set_time(c, begin);
}
ANSWER(ExitInitializationMode, initialize(c), void *c)
ANSWER(EnterEventMode, OK, void *c)
ANSWER(EnterContinuousTimeMode, OK, void *c)
ANSWER(Terminate, OK, void *c)
ANSWER(Reset, (start(c), OK), void *c)

ANSWER(SetTime, set_time(c, time), void *c, double time)
FMI(SetContinuousStates)(void *c, const double x[], size_t n) {
    for (size_t i = 0; i < n && i < NX; i++) MODEL(set_state)(&((instance *)c)->now.m, (int32_t)i, x[i]);
    changed(c);
    return n == NX ? OK : refuse(c, "There are %d states, not %zu", NX, n);
}
ANSWER(BY_VERSION(GetDerivatives, GetContinuousStateDerivatives), get_all(c, RATE, NX, v, n),
       void *c, double v[], size_t n)
ANSWER(GetEventIndicators, get_all(c, INDICATOR, NZ, v, n), void *c, double v[], size_t n)
ANSWER(GetContinuousStates, get_all(c, STATE, NX, v, n), void *c, double v[], size_t n)
FMI(GetNominalsOfContinuousStates)(void *c, double v[], size_t n) {
    for (size_t i = 0; i < n; i++) v[i] = NOMINAL;
    return OK;
}
FMI(CompletedIntegratorStep)(void *c, boolean settled, boolean *event, boolean *terminate) {
    *event = MODEL(look)(&((instance *)c)->now.m); /* tools enter event mode only afterwards */
    *terminate = false;
    return OK;
}

static int keep(instance *s, const void *bytes, void **state) {
    if (*state == NULL) *state = malloc(sizeof(memory));
    if (*state == NULL) return refuse(s, "There is no memory for a state");
    memcpy(*state, bytes, sizeof(memory));
    return OK;
}
ANSWER(BY_VERSION(GetFMUstate, GetFMUState), keep(c, &((instance *)c)->now, state),
       void *c, void **state)
ANSWER(BY_VERSION(SetFMUstate, SetFMUState),
       (memcpy(&((instance *)c)->now, state, sizeof(memory)), OK), void *c, void *state)
ANSWER(BY_VERSION(FreeFMUstate, FreeFMUState), (free(*state), *state = NULL, OK),
       void *c, void **state)
ANSWER(BY_VERSION(SerializedFMUstateSize, SerializedFMUStateSize), (*size = sizeof(memory), OK),
       void *c, void *state, size_t *size)
FMI(BY_VERSION(SerializeFMUstate, SerializeFMUState))(void *c, void *state, unsigned char bytes[],
                                                      size_t size) {
    if (size < sizeof(memory)) return refuse(c, "A state needs %zu bytes", sizeof(memory));
    memcpy(bytes, state, sizeof(memory));
    return OK;
}
FMI(BY_VERSION(DeSerializeFMUstate, DeserializeFMUState))(void *c, const unsigned char bytes[],
                                                          size_t size, void **state) {
    if (size != sizeof(memory) || memcmp(bytes, TOKEN, sizeof TOKEN) != 0)
        return refuse(c, "These bytes are no state of '" TITLE "'");
    return keep(c, bytes, state);
}
