/* What the parts of the fake libnvidia-ml.so.1 share.  fixtures.py compiles them, description.py tells the file format. */
#ifndef FAKE_H
#define FAKE_H

#include <stddef.h>

#define MAX_GPUS 64
#define MAX_SLICES 16 /* MIG devices of one card */
#define MAX_LANES 36  /* NVLINK_MAX_LINKS */

/* nvmlReturn_t */
enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    TIMED_OUT = 10,
    UNKNOWN_ERROR = 999
};

typedef unsigned int u32;
typedef unsigned long long u64;

/* What an nvmlDevice_t points to: a card, or a MIG device of it.  `place` is where its keys begin. */
typedef struct {
    int gpu, slice; /* slice -1: the card itself */
    char place[32];
} device;

typedef struct {
    char legacy[16];
    u32 domain, bus, device, id, subsystem;
    char bus_id[32];
} pci_info;

extern device devices[MAX_GPUS][MAX_SLICES + 1];
extern int users; /* nvmlInit calls not yet undone */

int error_code(const char *name);
const char *error_text(int code);

/* The value of one key, SUCCESS or the error that it stands for; NOT_SUPPORTED where the key is missing. */
int lookup(char *out, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same as a call of NVML: waits as long as the key's and the device's delays say, and fails where the card does. */
int ask(device *d, char *out, size_t size, const char *format, ...) __attribute__((format(printf, 4, 5)));
int ask_system(char *out, size_t size, const char *key);
int ask_number(device *d, u64 *out, const char *format, ...) __attribute__((format(printf, 3, 4)));
int ask_numbers(device *d, u64 *out, int count, const char *key);

/* Fill from "00000000:3B:00.0". */
int parse_pci(const char *text, pci_info *out);

#endif
