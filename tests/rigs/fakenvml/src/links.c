/* NVLink lanes, PCIe ancestors, peer access, affinities and field values: what a link matrix is made of. */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* `lane.N` is "up|down gpu|npu|switch|unknown|- BUSID|- VERSION"; of `lanes` lanes; one beyond them is no lane. */
typedef struct {
    int up, type; /* nvmlIntNvLinkDeviceType_t; -1: a driver that does not tell */
    u32 version;
    pci_info remote;
    int remote_known;
} lane;

static int lane_of(device *d, u32 index, lane *out) {
    char value[128], state[16], type[16], bus[40], lanes[16];
    int result = ask(d, value, sizeof value, "lane.%u", index);
    if (result == NOT_SUPPORTED && lookup(lanes, sizeof lanes, "%s.lanes", d->place) == SUCCESS && index >= (u32)atoi(lanes))
        return INVALID_ARGUMENT;
    if (result != SUCCESS) return result;
    if (sscanf(value, "%15s %15s %39s %u", state, type, bus, &out->version) != 4) return UNKNOWN_ERROR;
    out->up = !strcmp(state, "up");
    out->type = !strcmp(type, "gpu") ? 0 : !strcmp(type, "npu") ? 1 : !strcmp(type, "switch") ? 2 : *type == '-' ? -1 : 255;
    out->remote_known = *bus != '-' && parse_pci(bus, &out->remote) == SUCCESS;
    return SUCCESS;
}

int nvmlDeviceGetNvLinkState(device *d, u32 index, u32 *out) {
    lane one;
    int result = lane_of(d, index, &one);
    if (result == SUCCESS) *out = one.up;
    return result;
}
int nvmlDeviceGetNvLinkVersion(device *d, u32 index, u32 *out) {
    lane one;
    int result = lane_of(d, index, &one);
    if (result == SUCCESS) *out = one.version;
    return result;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(device *d, u32 index, u32 *out) {
    lane one;
    int result = lane_of(d, index, &one);
    if (result == SUCCESS && one.type < 0) return NOT_SUPPORTED;
    if (result == SUCCESS) *out = one.type;
    return result;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(device *d, u32 index, pci_info *out) {
    lane one;
    int result = lane_of(d, index, &one);
    if (result == SUCCESS && !one.remote_known) return NOT_SUPPORTED;
    if (result != SUCCESS) return result;
    *out = one.remote;
    out->id = one.type == 1 ? 0x04ea1014 : one.type == 2 ? 0x22a310de : 0x233510de; /* device and vendor */
    return SUCCESS;
}
int nvmlDeviceGetNvLinkCapability(device *d, u32 index, u32 capability, u32 *out) {
    lane one;
    int result = lane_of(d, index, &one);
    if (result == SUCCESS) *out = capability == 0; /* peer access, and none of the older kinds */
    return result;
}
int nvmlDeviceGetNvLinkErrorCounter(device *d, u32 index, u32 counter, u64 *out) {
    return ask_number(d, out, "lane_errors.%u.%u", index, counter);
}

typedef struct {
    u32 field, scope;
    long long stamp_us, latency_us;
    u32 type;
    int result;
    union {
        double as_double;
        u32 as_u32;
        u64 as_u64;
    } value;
} field_value;
enum { TYPE_U32 = 1, TYPE_U64 = 3, FIELD_LANES = 91 };

/* `field.ID` or `field.ID.SCOPE`. */
int nvmlDeviceGetFieldValues(device *d, int count, field_value *values) {
    char unused[8];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int result = ask(d, unused, sizeof unused, "fields");
    if (result != SUCCESS && result != NOT_SUPPORTED) return result;
    for (int i = 0; i < count; i++) {
        field_value *one = &values[i];
        one->stamp_us = now.tv_sec * 1000000LL + now.tv_nsec / 1000;
        one->latency_us = 0;
        one->type = one->field == FIELD_LANES ? TYPE_U32 : TYPE_U64;
        one->value.as_u64 = 0;
        if (one->field == FIELD_LANES) one->result = ask_number(d, &one->value.as_u64, "lanes");
        else if (one->scope) one->result = ask_number(d, &one->value.as_u64, "field.%u.%u", one->field, one->scope);
        else one->result = ask_number(d, &one->value.as_u64, "field.%u", one->field);
    }
    return SUCCESS;
}

typedef struct {
    u32 version;
    unsigned char cluster[16];
    u32 status, clique, state, health;
} fabric;
int nvmlDeviceGetGpuFabricInfoV(device *d, fabric *out) { /* state, status, clique, health */
    u64 v[4];
    int result = ask_numbers(d, v, 4, "fabric");
    if (result != SUCCESS) return result;
    out->state = v[0], out->status = v[1], out->clique = v[2], out->health = v[3];
    memset(out->cluster, 0x5a, sizeof out->cluster);
    return SUCCESS;
}

/* A key between two cards, told once for both directions. */
static int between(device *a, device *b, const char *key, u32 *out) {
    char value[32], unused[8];
    if (!a || !b) return INVALID_ARGUMENT;
    device *first = a->gpu < b->gpu ? a : b, *second = first == a ? b : a;
    int result = ask(second, unused, sizeof unused, "pair");
    if (result != SUCCESS && result != NOT_SUPPORTED) return result;
    result = ask(first, value, sizeof value, "%s.%d", key, second->gpu);
    if (result == SUCCESS) *out = strtoul(value, NULL, 0);
    return result;
}
int nvmlDeviceGetTopologyCommonAncestor(device *a, device *b, u32 *out) { return between(a, b, "ancestor", out); }
int nvmlDeviceGetP2PStatus(device *a, device *b, u32 what, u32 *out) {
    char key[32];
    snprintf(key, sizeof key, "p2p.%u", what);
    return between(a, b, key, out);
}

/* A list such as "0-55,112-167" as a bit set of `size` longs. */
static int bit_set(device *d, u32 size, unsigned long *out, const char *key) {
    char value[512], *at = value;
    int result = ask(d, value, sizeof value, "%s", key);
    if (result != SUCCESS) return result;
    memset(out, 0, size * sizeof *out);
    while (*at >= '0' && *at <= '9') {
        unsigned long from = strtoul(at, &at, 10), to = *at == '-' ? strtoul(at + 1, &at, 10) : from;
        if (to / 64 >= size) return INSUFFICIENT_SIZE;
        for (; from <= to; from++) out[from / 64] |= 1UL << from % 64;
        at += *at == ',';
    }
    return SUCCESS;
}
int nvmlDeviceGetCpuAffinity(device *d, u32 size, unsigned long *out) { return bit_set(d, size, out, "cpus"); }
int nvmlDeviceGetMemoryAffinity(device *d, u32 size, unsigned long *out, u32 scope) {
    (void)scope;
    return bit_set(d, size, out, "nodes");
}
int nvmlDeviceGetNumaNodeId(device *d, int *out) {
    u64 value;
    int result = ask_number(d, &value, "numa_id");
    if (result == SUCCESS) *out = (int)value;
    return result;
}
