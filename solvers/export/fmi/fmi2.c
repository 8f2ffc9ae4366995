/* Functions of version 2.0 of the standard, with its types. */

typedef void *fmi2Component, *fmi2FMUstate;
typedef unsigned int fmi2ValueReference;
typedef double fmi2Real;
typedef int fmi2Integer, fmi2Boolean, fmi2Status, fmi2Type, fmi2StatusKind;
typedef const char *fmi2String;
typedef char fmi2Byte;
typedef struct {
    void (*logger)(void *, fmi2String, fmi2Status, fmi2String, fmi2String, ...);
    void *(*allocateMemory)(size_t, size_t);
    void (*freeMemory)(void *);
    void (*stepFinished)(void *, fmi2Status);
    void *componentEnvironment;
} fmi2CallbackFunctions;
typedef struct {
    fmi2Boolean newDiscreteStatesNeeded, terminateSimulation;
    fmi2Boolean nominalsOfContinuousStatesChanged, valuesOfContinuousStatesChanged;
    fmi2Boolean nextEventTimeDefined;
    fmi2Real nextEventTime;
} fmi2EventInfo;
typedef void (*logger2)(void *, fmi2String, fmi2Status, fmi2String, fmi2String, ...);

#ifdef FMI2_FUNCTION_PREFIX
#define JOINED(prefix, name) prefix##name
#define PREFIXED(prefix, name) JOINED(prefix, name)
#define API(type, name) EXPORT type PREFIXED(FMI2_FUNCTION_PREFIX, name)
#else
#define API(type, name) EXPORT type name
#endif
#define REFS const fmi2ValueReference r[], size_t n

static void tell(instance *s, int status, const char *text) {
    if (s->logger != NULL)
        ((logger2)s->logger)(s->environment, s->name, status,
                             status == DISCARD ? "logStatusDiscard" : "logStatusError", "%s", text);
}

API(const char *, fmi2GetTypesPlatform)(void) { return "default"; }
API(const char *, fmi2GetVersion)(void) { return "2.0"; }

API(fmi2Status, fmi2SetDebugLogging)(fmi2Component c, fmi2Boolean on, size_t n, const fmi2String k[]) {
    (void)k, (void)n;
    ((instance *)c)->talks = on != 0;
    return OK;
}

API(fmi2Component, fmi2Instantiate)(fmi2String name, fmi2Type type, fmi2String guid,
                                    fmi2String resources, const fmi2CallbackFunctions *callbacks,
                                    fmi2Boolean visible, fmi2Boolean talks) {
    (void)resources, (void)visible;
    instance *s = (type == 0 ? HAS_MODEL_EXCHANGE : HAS_CO_SIMULATION) ? create(name, guid) : NULL;
    if (s == NULL) {
        if (callbacks != NULL && callbacks->logger != NULL)
            callbacks->logger(callbacks->componentEnvironment, name, ERROR, "logStatusError",
                              "Cannot instantiate '" TITLE "': another guid or kind is needed");
        return NULL;
    }
    if (callbacks != NULL) s->logger = (function)callbacks->logger;
    if (callbacks != NULL) s->environment = callbacks->componentEnvironment;
    s->talks = talks != 0;
    return s;
}

API(void, fmi2FreeInstance)(fmi2Component c) { free(c); }

API(fmi2Status, fmi2SetupExperiment)(fmi2Component c, fmi2Boolean has_tolerance, fmi2Real tolerance,
                                     fmi2Real begin, fmi2Boolean has_end, fmi2Real end) {
    instance *s = c;
    (void)has_end, (void)end;
    if (has_tolerance) s->now.tolerance = tolerance;
    return set_time(s, begin);
}

API(fmi2Status, fmi2EnterInitializationMode)(fmi2Component c) { return (void)c, OK; }
API(fmi2Status, fmi2ExitInitializationMode)(fmi2Component c) { return initialize(c); }
API(fmi2Status, fmi2Terminate)(fmi2Component c) { return (void)c, OK; }
API(fmi2Status, fmi2Reset)(fmi2Component c) { return start(c), OK; }

API(fmi2Status, fmi2GetReal)(fmi2Component c, REFS, fmi2Real v[]) { return get_numbers(c, r, n, v); }
API(fmi2Status, fmi2SetReal)(fmi2Component c, REFS, const fmi2Real v[]) {
    return set_numbers(c, r, n, v);
}

#define NO_VARIABLES(kind, type)                                                          \
    API(fmi2Status, fmi2Get##kind)(fmi2Component c, REFS, type v[]) {                     \
        return (void)r, (void)v, n == 0 ? OK : refuse(c, "All variables are of type Real"); \
    }                                                                                     \
    API(fmi2Status, fmi2Set##kind)(fmi2Component c, REFS, const type v[]) {               \
        return (void)r, (void)v, n == 0 ? OK : refuse(c, "All variables are of type Real"); \
    }
NO_VARIABLES(Integer, fmi2Integer)
NO_VARIABLES(Boolean, fmi2Boolean)
NO_VARIABLES(String, fmi2String)

API(fmi2Status, fmi2GetFMUstate)(fmi2Component c, fmi2FMUstate *state) {
    return get_memory(c, state);
}
API(fmi2Status, fmi2SetFMUstate)(fmi2Component c, fmi2FMUstate state) {
    return memcpy(&((instance *)c)->now, state, sizeof(memory)), OK;
}
API(fmi2Status, fmi2FreeFMUstate)(fmi2Component c, fmi2FMUstate *state) {
    return (void)c, free(*state), *state = NULL, OK;
}
API(fmi2Status, fmi2SerializedFMUstateSize)(fmi2Component c, fmi2FMUstate state, size_t *size) {
    return (void)c, (void)state, *size = sizeof(memory), OK;
}
API(fmi2Status, fmi2SerializeFMUstate)(fmi2Component c, fmi2FMUstate state, fmi2Byte b[], size_t n) {
    return write_memory(c, state, b, n);
}
API(fmi2Status, fmi2DeSerializeFMUstate)(fmi2Component c, const fmi2Byte b[], size_t n,
                                         fmi2FMUstate *state) {
    return read_memory(c, b, n, state);
}

API(fmi2Status, fmi2GetDirectionalDerivative)(fmi2Component c, const fmi2ValueReference unknowns[],
                                              size_t rows, const fmi2ValueReference knowns[],
                                              size_t columns, const fmi2Real seed[],
                                              fmi2Real result[]) {
    return products(c, unknowns, rows, knowns, columns, seed, result, false);
}

/* Model Exchange ------------------------------------------------------------------------- */

API(fmi2Status, fmi2EnterEventMode)(fmi2Component c) { return (void)c, OK; }
API(fmi2Status, fmi2EnterContinuousTimeMode)(fmi2Component c) { return (void)c, OK; }

API(fmi2Status, fmi2NewDiscreteStates)(fmi2Component c, fmi2EventInfo *info) {
    instance *s = c;
    bool moved = false;
    int status = handle(s, &moved);
    memset(info, 0, sizeof *info);
    info->terminateSimulation = s->now.ended;
    info->valuesOfContinuousStatesChanged = moved;
    info->nextEventTime = MODEL(next_time)(&s->now.m);
    info->nextEventTimeDefined = isfinite(info->nextEventTime) != 0;
    return status;
}

API(fmi2Status, fmi2CompletedIntegratorStep)(fmi2Component c, fmi2Boolean settled, fmi2Boolean *event,
                                             fmi2Boolean *terminate) {
    (void)settled;
    *event = MODEL(look)(&((instance *)c)->now.m); /* tools enter event mode only afterwards */
    *terminate = 0;
    return OK;
}

API(fmi2Status, fmi2SetTime)(fmi2Component c, fmi2Real time) { return set_time(c, time); }
API(fmi2Status, fmi2SetContinuousStates)(fmi2Component c, const fmi2Real x[], size_t n) {
    return set_states(c, x, n);
}
API(fmi2Status, fmi2GetDerivatives)(fmi2Component c, fmi2Real v[], size_t n) {
    return get_all(c, RATE, NX, v, n);
}
API(fmi2Status, fmi2GetEventIndicators)(fmi2Component c, fmi2Real v[], size_t n) {
    return get_all(c, INDICATOR, NZ, v, n);
}
API(fmi2Status, fmi2GetContinuousStates)(fmi2Component c, fmi2Real v[], size_t n) {
    return get_all(c, STATE, NX, v, n);
}
API(fmi2Status, fmi2GetNominalsOfContinuousStates)(fmi2Component c, fmi2Real v[], size_t n) {
    (void)c;
    for (size_t i = 0; i < n; i++) v[i] = NOMINAL;
    return OK;
}

/* Co-Simulation -------------------------------------------------------------------------- */

API(fmi2Status, fmi2DoStep)(fmi2Component c, fmi2Real time, fmi2Real step, fmi2Boolean settled) {
    instance *s = c;
    (void)settled;
    int status = advance(s, time + step);
    return s->now.ended ? DISCARD : status;
}

API(fmi2Status, fmi2CancelStep)(fmi2Component c) { return refuse(c, "No step is under way"); }
API(fmi2Status, fmi2SetRealInputDerivatives)(fmi2Component c, REFS, const fmi2Integer o[],
                                             const fmi2Real v[]) {
    return (void)r, (void)n, (void)o, (void)v, refuse(c, "Inputs are constant in each step");
}
API(fmi2Status, fmi2GetRealOutputDerivatives)(fmi2Component c, REFS, const fmi2Integer o[],
                                              fmi2Real v[]) {
    return (void)r, (void)n, (void)o, (void)v, refuse(c, "There are no derivatives of outputs");
}
API(fmi2Status, fmi2GetStatus)(fmi2Component c, const fmi2StatusKind k, fmi2Status *v) {
    return (void)c, (void)k, (void)v, DISCARD;
}
API(fmi2Status, fmi2GetRealStatus)(fmi2Component c, const fmi2StatusKind kind, fmi2Real *value) {
    if (kind == 2) *value = MODEL(time)(&((instance *)c)->now.m); /* the last successful time */
    return kind == 2 ? OK : DISCARD;
}
API(fmi2Status, fmi2GetIntegerStatus)(fmi2Component c, const fmi2StatusKind k, fmi2Integer *v) {
    return (void)c, (void)k, (void)v, DISCARD;
}
API(fmi2Status, fmi2GetBooleanStatus)(fmi2Component c, const fmi2StatusKind kind, fmi2Boolean *value) {
    if (kind == 3) *value = ((instance *)c)->now.ended; /* terminated */
    return kind == 3 ? OK : DISCARD;
}
API(fmi2Status, fmi2GetStringStatus)(fmi2Component c, const fmi2StatusKind k, fmi2String *v) {
    return (void)c, (void)k, (void)v, DISCARD;
}
