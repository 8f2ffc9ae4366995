/* What both versions of the standard have in common: an instance, its variables and functions. */

#define JOINED(a, b) a##b
#define JOIN(a, b) JOINED(a, b)
#if defined(FMI2_FUNCTION_PREFIX)
#define PREFIX FMI2_FUNCTION_PREFIX
#elif defined(FMI3_FUNCTION_PREFIX)
#define PREFIX FMI3_FUNCTION_PREFIX
#else
#define PREFIX
#endif
#define FMI_OF(type, name) EXPORT type JOIN(PREFIX, JOIN(VERSION, name))
#define FMI(name) FMI_OF(int, name)
#define REFS const uint32_t r[], size_t n

#if FMI_VERSION == 2 /* with booleans of four bytes, and other names */
#define VERSION fmi2
#define RATES GetDerivatives
#define GET_STATE GetFMUstate
#define SET_STATE SetFMUstate
#define FREE_STATE FreeFMUstate
#define SIZE_OF_STATE SerializedFMUstateSize
#define WRITE_STATE SerializeFMUstate
#define READ_STATE DeSerializeFMUstate
typedef int boolean;
#else
#define VERSION fmi3
#define RATES GetContinuousStateDerivatives
#define GET_STATE GetFMUState
#define SET_STATE SetFMUState
#define FREE_STATE FreeFMUState
#define SIZE_OF_STATE SerializedFMUStateSize
#define WRITE_STATE SerializeFMUState
#define READ_STATE DeserializeFMUState
typedef bool boolean;
#endif

enum { TIME, STATE, RATE, VALUE, SIGNAL, INDICATOR }; /* arrays of numbers */
enum { OK, WARNING, DISCARD, ERROR };                 /* statuses of the standard */
enum { STATES_CHANGED = 1, ENDED = 4 }; /* flags of the events of a model */

/* All that the state of a unit consists of; copied as it is. */
typedef struct {
    char token[sizeof TOKEN];
    model m;
    double tolerance;
    double rates[NX + 1], signals[NS + 1], indicators[NZ + 1];
    bool has_rates, has_signals, has_indicators; /* since something changed */
    int64_t flags;                               /* of the initialization, until they are told */
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

static int refuse(instance *s, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    tell(s, ERROR, text);
    return ERROR;
}

static int failed(instance *s, int64_t status, int told) {
    char text[512];
    (void)snprintf(text, sizeof text, "Cannot simulate '" TITLE "' beyond t = %.17g: %s",
                   MODEL(time)(&s->now.m), MODEL(problem)(status));
    tell(s, told, text);
    return told;
}

static void changed(instance *s) {
    s->now.has_rates = s->now.has_signals = s->now.has_indicators = false;
}

static void start(instance *s) {
    memset(&s->now, 0, sizeof s->now);
    memcpy(s->now.token, TOKEN, sizeof TOKEN);
    s->now.tolerance = TOLERANCE;
    MODEL(reset)(&s->now.m);
}

static instance *create(const char *name, const char *token) {
    instance *s = strcmp(token, TOKEN) == 0 ? malloc(sizeof *s) : NULL;
    if (s != NULL) {
        memset(s, 0, sizeof *s);
        (void)snprintf(s->name, sizeof s->name, "%s", name);
        start(s);
    }
    return s;
}

/* Variables ------------------------------------------------------------------------------ */

static const double *computed(instance *s, int32_t array) {
    memory *now = &s->now;
    if (array == RATE && !now->has_rates) MODEL(derivatives)(&now->m, now->rates);
    if (array == SIGNAL && !now->has_signals) MODEL(signals)(&now->m, now->signals);
    if (array == INDICATOR && !now->has_indicators) MODEL(witnesses)(&now->m, now->indicators);
    if (array == RATE) now->has_rates = true;
    if (array == SIGNAL) now->has_signals = true;
    if (array == INDICATOR) now->has_indicators = true;
    return array == RATE ? now->rates : array == SIGNAL ? now->signals : now->indicators;
}

static double number(instance *s, int32_t array, int32_t at) {
    switch (array) {
        case TIME: return MODEL(time)(&s->now.m);
        case STATE: return MODEL(state)(&s->now.m, at);
        case VALUE: return MODEL(get)(&s->now.m, at);
        default: return computed(s, array)[at];
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

/* The place of a number among states and inputs, or beyond rates and signals; -1 for others. */
static int32_t known_place(const variable *v, int32_t k) {
    if (v->array == STATE) return v->at + k;
    for (int32_t u = 0; u < NU; u++)
        if (v->array == VALUE && DRIVES[u] == v->at + k) return NX + u;
    return -1;
}

static int32_t unknown_place(const variable *v, int32_t k) {
    if (v->array == RATE) return v->at + k;
    return v->array == SIGNAL ? NX + v->at + k : -1;
}

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
                int32_t place = is_known ? known_place(v, k) : unknown_place(v, k);
                double *number = is_known ? inner + place : outer + place;
                if (!is_known && v->array == STATE) number = inner + v->at + k; /* shown as it is */
                else if (!is_known && v->array == VALUE) number = outer + NX + NS; /* discrete */
                else if (place < 0) return refuse(s, "There are no derivatives by, or of, '%s'", v->name);
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

/* Functions that are the same in both versions ------------------------------------------- */

FMI_OF(void, FreeInstance)(void *c) { free(c); }
FMI(Terminate)(void *c) { return (void)c, OK; }
FMI(Reset)(void *c) { return start(c), OK; }
FMI(ExitInitializationMode)(void *c) { return initialize(c); }
FMI(EnterEventMode)(void *c) { return (void)c, OK; }
FMI(EnterContinuousTimeMode)(void *c) { return (void)c, OK; }
FMI(SetTime)(void *c, double time) { return set_time(c, time); }
FMI(SetContinuousStates)(void *c, const double x[], size_t n) {
    for (size_t i = 0; i < n && i < NX; i++) MODEL(set_state)(&((instance *)c)->now.m, (int32_t)i, x[i]);
    changed(c);
    return n == NX ? OK : refuse(c, "There are %d states, not %zu", NX, n);
}
FMI(RATES)(void *c, double v[], size_t n) { return get_all(c, RATE, NX, v, n); }
FMI(GetEventIndicators)(void *c, double v[], size_t n) { return get_all(c, INDICATOR, NZ, v, n); }
FMI(GetContinuousStates)(void *c, double v[], size_t n) { return get_all(c, STATE, NX, v, n); }
FMI(GetNominalsOfContinuousStates)(void *c, double v[], size_t n) {
    for (size_t i = 0; i < n; i++) v[i] = NOMINAL;
    return (void)c, OK;
}
FMI(CompletedIntegratorStep)(void *c, boolean settled, boolean *event, boolean *terminate) {
    *event = MODEL(look)(&((instance *)c)->now.m); /* tools enter event mode only afterwards */
    *terminate = false;
    return (void)settled, OK;
}

FMI(GET_STATE)(void *c, void **state) {
    if (*state == NULL) *state = malloc(sizeof(memory));
    if (*state == NULL) return refuse(c, "There is no memory for a state");
    memcpy(*state, &((instance *)c)->now, sizeof(memory));
    return OK;
}
FMI(SET_STATE)(void *c, void *state) {
    return memcpy(&((instance *)c)->now, state, sizeof(memory)), OK;
}
FMI(FREE_STATE)(void *c, void **state) { return (void)c, free(*state), *state = NULL, OK; }
FMI(SIZE_OF_STATE)(void *c, void *state, size_t *size) {
    return (void)c, (void)state, *size = sizeof(memory), OK;
}
FMI(WRITE_STATE)(void *c, void *state, unsigned char bytes[], size_t size) {
    if (size < sizeof(memory)) return refuse(c, "A state needs %zu bytes", sizeof(memory));
    memcpy(bytes, state, sizeof(memory));
    return OK;
}
FMI(READ_STATE)(void *c, const unsigned char bytes[], size_t size, void **state) {
    if (size != sizeof(memory) || memcmp(bytes, TOKEN, sizeof TOKEN) != 0)
        return refuse(c, "These bytes are no state of '" TITLE "'");
    if (*state == NULL) *state = malloc(size);
    if (*state == NULL) return refuse(c, "There is no memory for a state");
    memcpy(*state, bytes, size);
    return OK;
}
