/* Who is on a card: `processes` and `graphics` are lists of pid:bytes or, in MIG mode, pid:bytes:instance; bytes are "-"
 * where NVML can not tell.  `details` and `details_graphics` are what the call of CUDA 14 answers. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

#define NOT_AVAILABLE (~0ULL)

typedef struct {
    u32 pid;
    u64 bytes;
    u32 gpu_instance, compute_instance;
} process;

static int list(device *d, u32 *count, process *out, const char *key) {
    static const u32 most = 512;
    char value[16384], *at = value;
    u32 room = *count, found = 0;
    int result = ask(d, value, sizeof value, "%s", key);
    if (result == NOT_SUPPORTED) {
        *count = 0;
        return SUCCESS;
    }
    if (result != SUCCESS) return result;
    for (; *at && found < most; found++) {
        u32 pid = strtoul(at, &at, 10);
        at += *at == ':';
        u64 bytes = *at == '-' ? (at++, NOT_AVAILABLE) : strtoull(at, &at, 10);
        u32 instance = *at == ':' ? strtoul(at + 1, &at, 10) : ~0u;
        at += strcspn(at, " ");
        at += strspn(at, " ");
        if (out && found < room) out[found] = (process){pid, bytes, instance, instance};
    }
    *count = found;
    return found > room ? INSUFFICIENT_SIZE : SUCCESS;
}
int nvmlDeviceGetComputeRunningProcesses_v3(device *d, u32 *count, process *out) {
    return list(d, count, out, "processes");
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(device *d, u32 *count, process *out) {
    return list(d, count, out, "graphics");
}
int nvmlDeviceGetMPSComputeRunningProcesses_v3(device *d, u32 *count, process *out) {
    return list(d, count, out, "mps");
}

typedef struct {
    u32 pid;
    u64 bytes;
    u32 gpu_instance, compute_instance;
    u64 protected_bytes;
} process_detail;
typedef struct {
    u32 version, mode, count;
    process_detail *out;
} detail_list;
int nvmlDeviceGetRunningProcessDetailList(device *d, detail_list *list_of) {
    process found[512];
    u32 count = 512, room = list_of->out ? list_of->count : 0;
    const char *key = list_of->mode == 1 ? "details_graphics" : "details";
    char unused[8];
    int result = ask(d, unused, sizeof unused, "%s", key);
    if (result != SUCCESS) return result;
    result = list(d, &count, found, key);
    if (result != SUCCESS) return result;
    for (u32 i = 0; i < count && i < room; i++)
        list_of->out[i] = (process_detail){found[i].pid, found[i].bytes, found[i].gpu_instance, found[i].compute_instance, 0};
    list_of->count = count;
    return count > room ? INSUFFICIENT_SIZE : SUCCESS;
}

typedef struct {
    u32 pid;
    u64 stamp;
    u32 sm, memory, encoder, decoder;
} sample;

/* `process_utilization` is a list of pid:sm:memory. */
int nvmlDeviceGetProcessUtilization(device *d, sample *out, u32 *count, u64 since) {
    char value[16384], *at = value;
    u32 room = *count, found = 0;
    int result = ask(d, value, sizeof value, "process_utilization");
    if (result != SUCCESS) return result == NOT_SUPPORTED ? NOT_FOUND : result;
    for (; *at; found++) {
        sample one = {.pid = strtoul(at, &at, 10), .stamp = since + 1};
        if (*at == ':') one.sm = strtoul(at + 1, &at, 10);
        if (*at == ':') one.memory = strtoul(at + 1, &at, 10);
        at += strspn(at, " ");
        if (out && found < room) out[found] = one;
    }
    *count = found;
    return !out || found > room ? INSUFFICIENT_SIZE : SUCCESS;
}
