/* The library itself, the handles of its cards, and MIG. */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

device devices[MAX_GPUS][MAX_SLICES + 1];
int users;

int nvmlInitWithFlags(u32 flags) {
    char value[64];
    (void)flags;
    for (int gpu = 0; gpu < MAX_GPUS; gpu++)
        for (int slice = -1; slice < MAX_SLICES; slice++) {
            device *d = &devices[gpu][slice + 1];
            d->gpu = gpu;
            d->slice = slice;
            if (slice < 0) snprintf(d->place, sizeof d->place, "gpu.%d", gpu);
            else snprintf(d->place, sizeof d->place, "gpu.%d.mig.%d", gpu, slice);
        }
    int result = ask_system(value, sizeof value, "init");
    if (result != SUCCESS && result != NOT_SUPPORTED) return result;
    users++;
    return SUCCESS;
}
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

int nvmlShutdown(void) {
    if (!users) return UNINITIALIZED;
    users--;
    return SUCCESS;
}

const char *nvmlErrorString(int code) { return error_text(code); }

static int system_text(const char *key, char *out, u32 size) {
    return users ? ask_system(out, size, key) : UNINITIALIZED;
}
int nvmlSystemGetDriverVersion(char *out, u32 size) { return system_text("driver", out, size); }
int nvmlSystemGetNVMLVersion(char *out, u32 size) { return system_text("nvml", out, size); }
int nvmlSystemGetCudaDriverVersion_v2(int *out) {
    char value[32];
    int result = system_text("cuda", value, sizeof value);
    if (result == SUCCESS) *out = atoi(value);
    return result;
}
int nvmlSystemGetCudaDriverVersion(int *out) { return nvmlSystemGetCudaDriverVersion_v2(out); }

int nvmlSystemGetProcessName(u32 pid, char *out, u32 size) {
    if (!users) return UNINITIALIZED;
    int result = lookup(out, size, "process.%u", pid);
    return result == NOT_SUPPORTED ? NOT_FOUND : result;
}

static u32 gpus(void) {
    char value[32];
    return lookup(value, sizeof value, "count") == SUCCESS ? (u32)atoi(value) : 0;
}

int nvmlDeviceGetCount_v2(u32 *out) {
    if (!users) return UNINITIALIZED;
    *out = gpus();
    return SUCCESS;
}

/* `gpu.N.handle !NO_PERMISSION` keeps a card from being opened; one that is lost can not be opened either. */
int nvmlDeviceGetHandleByIndex_v2(u32 index, device **out) {
    char value[64];
    if (!users) return UNINITIALIZED;
    if (index >= gpus() || index >= MAX_GPUS) return INVALID_ARGUMENT;
    int result = ask(&devices[index][0], value, sizeof value, "handle");
    if (result != SUCCESS && result != NOT_SUPPORTED) return result;
    *out = &devices[index][0];
    return SUCCESS;
}

static int find(const char *key, const char *wanted, device **out) {
    char value[128];
    if (!users) return UNINITIALIZED;
    for (u32 gpu = 0; gpu < gpus(); gpu++)
        for (int slice = 0; slice <= MAX_SLICES; slice++)
            if (ask(&devices[gpu][slice], value, sizeof value, "%s", key) == SUCCESS && !strcasecmp(value, wanted)) {
                *out = &devices[gpu][slice];
                return SUCCESS;
            }
    return NOT_FOUND;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, device **out) { return find("uuid", uuid, out); }
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, device **out) { return find("pci", bus_id, out); }

int nvmlDeviceGetIndex(device *d, u32 *out) {
    if (!d) return INVALID_ARGUMENT;
    *out = d->slice < 0 ? d->gpu : d->slice;
    return SUCCESS;
}

int nvmlDeviceGetMigMode(device *d, u32 *now, u32 *pending) {
    u64 value[2];
    int result = ask_numbers(d, value, 2, "mig_mode");
    if (result == SUCCESS) *now = value[0], *pending = value[1];
    return result;
}

int nvmlDeviceGetMaxMigDeviceCount(device *d, u32 *out) {
    u64 value = 0;
    int result = ask_number(d, &value, "mig_devices");
    if (result == SUCCESS || result == NOT_SUPPORTED) *out = value;
    return result == NOT_SUPPORTED ? SUCCESS : result;
}

int nvmlDeviceGetMigDeviceHandleByIndex(device *d, u32 index, device **out) {
    char value[128];
    if (!d || d->slice >= 0 || index >= MAX_SLICES) return INVALID_ARGUMENT;
    int result = ask(&devices[d->gpu][index + 1], value, sizeof value, "uuid");
    if (result == SUCCESS) *out = &devices[d->gpu][index + 1];
    return result == NOT_SUPPORTED ? NOT_FOUND : result;
}

int nvmlDeviceIsMigDeviceHandle(device *d, u32 *out) {
    if (!d) return INVALID_ARGUMENT;
    *out = d->slice >= 0;
    return SUCCESS;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device *d, device **out) {
    if (!d || d->slice < 0) return INVALID_ARGUMENT;
    *out = &devices[d->gpu][0];
    return SUCCESS;
}

typedef struct {
    u32 multiprocessors, copy, decoders, encoders, jpeg, ofa, gpu_slices, compute_slices;
    u64 memory_mb;
} attributes;

int nvmlDeviceGetAttributes_v2(device *d, attributes *out) {
    u64 v[9];
    int result = ask_numbers(d, v, 9, "attributes");
    if (result == SUCCESS) *out = (attributes){v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8]};
    return result;
}
