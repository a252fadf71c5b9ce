/* The names without a version, which the real library keeps for programs of old; nvtop asks for these. */
#include "fake.h"

enum { MOST = 512 };

typedef struct {
    u32 pid;
    u64 bytes;
} process_v1;
typedef struct {
    u32 pid;
    u64 bytes;
    u32 gpu_instance, compute_instance;
} process_v3;

int nvmlInit_v2(void);
int nvmlDeviceGetCount_v2(u32 *out);
int nvmlDeviceGetHandleByIndex_v2(u32 index, device **out);
int nvmlDeviceGetComputeRunningProcesses_v3(device *d, u32 *count, process_v3 *out);
int nvmlDeviceGetGraphicsRunningProcesses_v3(device *d, u32 *count, process_v3 *out);

int nvmlInit(void) { return nvmlInit_v2(); }
int nvmlDeviceGetCount(u32 *out) { return nvmlDeviceGetCount_v2(out); }
int nvmlDeviceGetHandleByIndex(u32 index, device **out) { return nvmlDeviceGetHandleByIndex_v2(index, out); }

static int shorter(int (*now)(device *, u32 *, process_v3 *), device *d, u32 *count, process_v1 *out) {
    process_v3 whole[MOST];
    u32 room = *count, found = MOST;
    int result = now(d, &found, whole);
    if (result != SUCCESS) return result;
    for (u32 i = 0; out && i < found && i < room; i++) out[i] = (process_v1){whole[i].pid, whole[i].bytes};
    *count = found;
    return found > room ? INSUFFICIENT_SIZE : SUCCESS;
}
int nvmlDeviceGetComputeRunningProcesses(device *d, u32 *count, process_v1 *out) {
    return shorter(nvmlDeviceGetComputeRunningProcesses_v3, d, count, out);
}
int nvmlDeviceGetGraphicsRunningProcesses(device *d, u32 *count, process_v1 *out) {
    return shorter(nvmlDeviceGetGraphicsRunningProcesses_v3, d, count, out);
}
