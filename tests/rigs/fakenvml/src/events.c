/* Events: `event.N` is "gpu type data", N counted from 0.  A set sees those that are added after it was made, once. */
#include "fake.h"

#include <stdlib.h>
#include <unistd.h>

typedef struct {
    int next;
    u64 wanted[MAX_GPUS];
} event_set;

typedef struct {
    device *device;
    u64 type, data;
    u32 gpu_instance, compute_instance;
} event_data;

static int event(int number, u64 *out) {
    char value[64], *at = value;
    int result = lookup(value, sizeof value, "event.%d", number);
    for (int i = 0; result == SUCCESS && i < 3; i++) out[i] = strtoull(at, &at, 0);
    return result;
}

int nvmlEventSetCreate(event_set **out) {
    u64 one[3];
    if (!users) return UNINITIALIZED;
    *out = calloc(1, sizeof **out);
    while (event((*out)->next, one) == SUCCESS) (*out)->next++;
    return SUCCESS;
}

int nvmlEventSetFree(event_set *set) {
    free(set);
    return SUCCESS;
}

int nvmlDeviceGetSupportedEventTypes(device *d, u64 *out) { return ask_number(d, out, "event_types"); }

int nvmlDeviceRegisterEvents(device *d, u64 types, event_set *set) {
    u64 known = 0;
    int result = ask_number(d, &known, "event_types");
    if (result != SUCCESS) return result;
    if (types & ~known) return NOT_SUPPORTED;
    set->wanted[d->gpu] |= types;
    return SUCCESS;
}

int nvmlEventSetWait_v2(event_set *set, event_data *out, u32 timeout_ms) {
    /* A real driver sleeps until there is an event; looking more often than this would be seen in the panel's CPU time. */
    static const u32 step_ms = 200;
    u64 one[3];
    for (u32 waited = 0;; waited += step_ms) {
        while (event(set->next, one) == SUCCESS) {
            set->next++;
            if (one[0] < MAX_GPUS && set->wanted[one[0]] & one[1]) {
                *out = (event_data){&devices[one[0]][0], one[1], one[2], ~0u, ~0u};
                return SUCCESS;
            }
        }
        if (!users) return UNINITIALIZED;
        if (waited >= timeout_ms) return TIMED_OUT;
        usleep(step_ms * 1000);
    }
}
