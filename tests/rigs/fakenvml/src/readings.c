/* What one card is and reads.  Each key is named after its function; several numbers in one value are parted by blanks. */
#include "fake.h"

#include <string.h>

#define TEXT(function, key) \
    int function(device *d, char *out, u32 size) { return ask(d, out, size, key); }

#define NUMBER(function, key, type)                \
    int function(device *d, type *out) {           \
        u64 value;                                 \
        int result = ask_number(d, &value, key);   \
        if (result == SUCCESS) *out = (type)value; \
        return result;                             \
    }

/* One of several of a kind: a sensor, a clock, a fan. */
#define NUMBER_OF(function, key, type)                    \
    int function(device *d, u32 which, type *out) {       \
        u64 value;                                        \
        int result = ask_number(d, &value, key, which);   \
        if (result == SUCCESS) *out = (type)value;        \
        return result;                                    \
    }

#define PAIR(function, key, type)                      \
    int function(device *d, type *first, type *second) { \
        u64 value[2];                                  \
        int result = ask_numbers(d, value, 2, key);    \
        if (result == SUCCESS) *first = (type)value[0], *second = (type)value[1]; \
        return result;                                 \
    }

TEXT(nvmlDeviceGetName, "name")
TEXT(nvmlDeviceGetUUID, "uuid")
TEXT(nvmlDeviceGetSerial, "serial")
TEXT(nvmlDeviceGetVbiosVersion, "vbios")
NUMBER(nvmlDeviceGetMinorNumber, "minor", u32)
NUMBER(nvmlDeviceGetArchitecture, "architecture", u32)
NUMBER(nvmlDeviceGetBrand, "brand", u32)
NUMBER(nvmlDeviceGetNumGpuCores, "cores", u32)
NUMBER(nvmlDeviceGetGpuInstanceId, "gpu_instance", u32)
NUMBER(nvmlDeviceGetComputeInstanceId, "compute_instance", u32)
PAIR(nvmlDeviceGetCudaComputeCapability, "compute", int)
NUMBER(nvmlDeviceGetMemoryBusWidth, "bus_width", u32)

int nvmlDeviceGetPciInfo_v3(device *d, pci_info *out) {
    char value[64];
    int result = ask(d, value, sizeof value, "pci");
    return result == SUCCESS ? parse_pci(value, out) : result;
}

typedef struct {
    u64 total, free, used;
} memory_v1;
typedef struct {
    u32 version;
    u64 total, reserved, free, used;
} memory_v2;

/* `memory` is total, used, reserved.  Version 1 counts the reserve as used; `memory_v2 !…` is a driver without 2. */
int nvmlDeviceGetMemoryInfo(device *d, memory_v1 *out) {
    u64 v[3];
    int result = ask_numbers(d, v, 3, "memory");
    if (result == SUCCESS) *out = (memory_v1){v[0], v[0] - v[1] - v[2], v[1] + v[2]};
    return result;
}
int nvmlDeviceGetMemoryInfo_v2(device *d, memory_v2 *out) {
    u64 v[3];
    char unused[8];
    if (!d) return INVALID_ARGUMENT;
    int result = lookup(unused, sizeof unused, "%s.memory_v2", d->place);
    if (result == NOT_SUPPORTED) result = ask_numbers(d, v, 3, "memory");
    if (result == SUCCESS) *out = (memory_v2){out->version, v[0], v[2], v[0] - v[1] - v[2], v[1]};
    return result;
}
int nvmlDeviceGetBAR1MemoryInfo(device *d, memory_v1 *out) {
    u64 v[2];
    int result = ask_numbers(d, v, 2, "bar1");
    if (result == SUCCESS) *out = (memory_v1){v[0], v[0] - v[1], v[1]};
    return result;
}

typedef struct {
    u32 gpu, memory;
} utilization;
int nvmlDeviceGetUtilizationRates(device *d, utilization *out) {
    u64 v[2];
    int result = ask_numbers(d, v, 2, "utilization");
    if (result == SUCCESS) *out = (utilization){v[0], v[1]};
    return result;
}
int nvmlDeviceGetEncoderUtilization(device *d, u32 *out, u32 *period_us) {
    u64 value;
    int result = ask_number(d, &value, "encoder");
    if (result == SUCCESS) *out = value, *period_us = 200000;
    return result;
}
int nvmlDeviceGetDecoderUtilization(device *d, u32 *out, u32 *period_us) {
    u64 value;
    int result = ask_number(d, &value, "decoder");
    if (result == SUCCESS) *out = value, *period_us = 200000;
    return result;
}

typedef struct {
    u32 version;
    int sensor, celsius;
} temperature_v1;
NUMBER_OF(nvmlDeviceGetTemperature, "temperature.%u", u32)
int nvmlDeviceGetTemperatureV(device *d, temperature_v1 *out) {
    u64 value;
    int result = ask_number(d, &value, "temperature.%d", out->sensor);
    if (result == SUCCESS) out->celsius = (int)value;
    return result;
}
NUMBER_OF(nvmlDeviceGetTemperatureThreshold, "threshold.%u", u32)
NUMBER(nvmlDeviceGetPowerUsage, "power_mw", u32)
NUMBER(nvmlDeviceGetEnforcedPowerLimit, "power_limit_mw", u32)
NUMBER(nvmlDeviceGetPowerManagementLimit, "power_limit_mw", u32)
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, "power_default_mw", u32)
PAIR(nvmlDeviceGetPowerManagementLimitConstraints, "power_range_mw", u32)
NUMBER(nvmlDeviceGetTotalEnergyConsumption, "energy_mj", u64)
NUMBER_OF(nvmlDeviceGetClockInfo, "clock.%u", u32)
NUMBER_OF(nvmlDeviceGetMaxClockInfo, "max_clock.%u", u32)
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, "event_reasons", u64)
NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, "event_reasons", u64)
NUMBER(nvmlDeviceGetSupportedClocksEventReasons, "supported_event_reasons", u64)
NUMBER(nvmlDeviceGetFanSpeed, "fan.0", u32)
NUMBER_OF(nvmlDeviceGetFanSpeed_v2, "fan.%u", u32)
NUMBER(nvmlDeviceGetNumFans, "fans", u32)
NUMBER(nvmlDeviceGetPerformanceState, "pstate", u32)
NUMBER(nvmlDeviceGetPersistenceMode, "persistence", u32)
NUMBER(nvmlDeviceGetComputeMode, "compute_mode", u32)
NUMBER(nvmlDeviceGetDisplayMode, "display_mode", u32)
NUMBER(nvmlDeviceGetDisplayActive, "display_active", u32)
PAIR(nvmlDeviceGetDriverModel, "driver_model", u32)
PAIR(nvmlDeviceGetDriverModel_v2, "driver_model", u32)

NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_gen", u32)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width", u32)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, "pcie_max_gen", u32)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, "pcie_max_width", u32)
NUMBER(nvmlDeviceGetPcieReplayCounter, "pcie_replays", u32)
NUMBER_OF(nvmlDeviceGetPcieThroughput, "pcie_kbs.%u", u32)

PAIR(nvmlDeviceGetEccMode, "ecc_mode", u32)
int nvmlDeviceGetTotalEccErrors(device *d, u32 kind, u32 counter, u64 *out) {
    return ask_number(d, out, "ecc.%u.%u", kind, counter);
}
int nvmlDeviceGetRemappedRows(device *d, u32 *corrected, u32 *uncorrected, u32 *pending, u32 *failed) {
    u64 v[4];
    int result = ask_numbers(d, v, 4, "remapped_rows");
    if (result == SUCCESS) *corrected = v[0], *uncorrected = v[1], *pending = v[2], *failed = v[3];
    return result;
}
