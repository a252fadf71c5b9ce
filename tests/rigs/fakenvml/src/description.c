/* The description: a file of `key value` lines, read again whenever it was replaced. */
#define _GNU_SOURCE
#include "fake.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const struct {
    int code;
    const char *name, *text;
} errors[] = {
    {0, "SUCCESS", "Success"},
    {1, "UNINITIALIZED", "Uninitialized"},
    {2, "INVALID_ARGUMENT", "Invalid Argument"},
    {3, "NOT_SUPPORTED", "Not Supported"},
    {4, "NO_PERMISSION", "Insufficient Permissions"},
    {6, "NOT_FOUND", "Not Found"},
    {7, "INSUFFICIENT_SIZE", "Insufficient Size"},
    {9, "DRIVER_NOT_LOADED", "Driver Not Loaded"},
    {10, "TIMEOUT", "Timeout"},
    {13, "FUNCTION_NOT_FOUND", "Function Not Found"},
    {14, "CORRUPTED_INFOROM", "Corrupted infoROM"},
    {15, "GPU_IS_LOST", "GPU is lost"},
    {16, "RESET_REQUIRED", "GPU requires restart"},
    {17, "OPERATING_SYSTEM", "The operating system has blocked the request."},
    {18, "LIB_RM_VERSION_MISMATCH", "RM has detected an NVML/RM version mismatch."},
    {19, "IN_USE", "In use by another client"},
    {20, "MEMORY", "Insufficient Memory"},
    {21, "NO_DATA", "No data"},
    {25, "ARGUMENT_VERSION_MISMATCH", "Argument version mismatch"},
    {27, "NOT_READY", "Not ready"},
    {28, "GPU_NOT_FOUND", "GPU not found"},
    {999, "UNKNOWN", "Unknown Error"},
};
enum { ERRORS = sizeof errors / sizeof *errors };

typedef struct {
    char *key, *value;
} entry;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char *path;
static char *content; /* the file; the entries point into it */
static entry *entries;
static size_t count;
static int any_delay; /* spares the common case its lookups */
static struct stat seen;

int error_code(const char *name) {
    for (int i = 0; i < ERRORS; i++)
        if (!strcmp(errors[i].name, name)) return errors[i].code;
    return atoi(name) ? atoi(name) : UNKNOWN_ERROR;
}

const char *error_text(int code) {
    for (int i = 0; i < ERRORS; i++)
        if (errors[i].code == code) return errors[i].text;
    return "Unknown Error";
}

/* For tests in the library's own process: play this file from now on, as a library that no one has initialised. */
void fakenvml_play(const char *file) {
    pthread_mutex_lock(&mutex);
    free(path);
    path = file ? strdup(file) : NULL;
    memset(&seen, 0, sizeof seen);
    users = 0;
    pthread_mutex_unlock(&mutex);
}

static int by_key(const void *a, const void *b) { return strcmp(((const entry *)a)->key, ((const entry *)b)->key); }

static void parse(void) {
    count = 0;
    any_delay = 0;
    char *rest = content, *line;
    while ((line = strsep(&rest, "\n"))) {
        char *value = strchr(line, ' ');
        if (!value || *line == '#') continue;
        *value++ = 0;
        entries = realloc(entries, (count + 1) * sizeof *entries);
        entries[count++] = (entry){line, value};
        any_delay |= strstr(line, "delay_us") != NULL;
    }
    qsort(entries, count, sizeof *entries, by_key);
}

static int refresh(void) { /* with the mutex held; 0 when there is a description */
    struct stat now;
    if (!path && getenv("GPUDECK_FAKE_NVML")) path = strdup(getenv("GPUDECK_FAKE_NVML"));
    if (!path || stat(path, &now)) return -1;
    if (now.st_ino == seen.st_ino && now.st_size == seen.st_size && !memcmp(&now.st_mtim, &seen.st_mtim, sizeof now.st_mtim))
        return 0;
    FILE *file = fopen(path, "r");
    if (!file) return -1;
    fstat(fileno(file), &now); /* it may have been replaced since */
    content = realloc(content, now.st_size + 1);
    content[fread(content, 1, now.st_size, file)] = 0;
    fclose(file);
    seen = now;
    parse();
    return 0;
}

static int slow(void) { /* whether anything is slow, by the file as it is now */
    pthread_mutex_lock(&mutex);
    int result = !refresh() && any_delay;
    pthread_mutex_unlock(&mutex);
    return result;
}

static int look(const char *key, char *out, size_t size) {
    pthread_mutex_lock(&mutex);
    int result = refresh() ? DRIVER_NOT_LOADED : NOT_SUPPORTED;
    if (result == NOT_SUPPORTED && count) {
        entry wanted = {(char *)key, NULL};
        entry *hit = bsearch(&wanted, entries, count, sizeof *entries, by_key);
        if (hit && *hit->value == '!') result = error_code(hit->value + 1);
        else if (hit) {
            snprintf(out, size, "%s", hit->value);
            result = SUCCESS;
        }
    }
    pthread_mutex_unlock(&mutex);
    return result;
}

int lookup(char *out, size_t size, const char *format, ...) {
    char key[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(key, sizeof key, format, arguments);
    va_end(arguments);
    return look(key, out, size);
}

/* Wait while `<key>.delay_us` asks for it.  Looked at again and again, so that a test can end a call that hangs. */
static void wait_for(const char *key) {
    char delay_key[192], value[32];
    struct timespec begin, now;
    snprintf(delay_key, sizeof delay_key, "%s.delay_us", key);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    while (slow() && look(delay_key, value, sizeof value) == SUCCESS) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        long long left = atoll(value) - (now.tv_sec - begin.tv_sec) * 1000000LL - (now.tv_nsec - begin.tv_nsec) / 1000;
        if (left <= 0) return;
        usleep(left < 5000 ? left : 5000);
    }
}

int ask(device *d, char *out, size_t size, const char *format, ...) {
    char name[96], key[160], card[32];
    if (!users) return UNINITIALIZED;
    if (!d) return INVALID_ARGUMENT;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    snprintf(card, sizeof card, "gpu.%d", d->gpu);
    snprintf(key, sizeof key, "%s.%s", d->place, name);
    wait_for(card);
    wait_for(key);
    char fault[8];
    int result = lookup(fault, sizeof fault, "%s.fault", card);
    return result == NOT_SUPPORTED ? look(key, out, size) : result;
}

int ask_system(char *out, size_t size, const char *key) {
    wait_for(key);
    return look(key, out, size);
}

int ask_number(device *d, u64 *out, const char *format, ...) {
    char name[96], value[64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    int result = ask(d, value, sizeof value, "%s", name);
    if (result == SUCCESS) *out = strtoull(value, NULL, 0);
    return result;
}

int ask_numbers(device *d, u64 *out, int wanted, const char *key) {
    char value[256], *at = value;
    int result = ask(d, value, sizeof value, "%s", key);
    for (int i = 0; result == SUCCESS && i < wanted; i++) out[i] = strtoull(at, &at, 0);
    return result;
}

int parse_pci(const char *text, pci_info *out) {
    memset(out, 0, sizeof *out);
    if (sscanf(text, "%x:%x:%x", &out->domain, &out->bus, &out->device) != 3) return INVALID_ARGUMENT;
    snprintf(out->bus_id, sizeof out->bus_id, "%08X:%02X:%02X.0", out->domain, out->bus & 0xff, out->device & 0xff);
    snprintf(out->legacy, sizeof out->legacy, "%04X:%02X:%02X.0", out->domain & 0xffff, out->bus & 0xff, out->device & 0xff);
    return SUCCESS;
}
