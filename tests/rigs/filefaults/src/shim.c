/* File calls that end the process, or fail, at the one that was asked for.
 *
 * Loaded by LD_PRELOAD.  file_faults_arm() sets what happens in this process; without it the calls are the C library's.
 * Counted is each call that changes something at or below `under`: open for writing, write, truncate, rename, link,
 * unlink, mkdir, rmdir, chmod, fsync.  The one with the number `at` (from 0) either ends the process as kill -9 does, a
 * write after half of its bytes, or fails with `error`; from then on every call that needs room fails likewise.  Which
 * of it came to pass is told by a file `under`.met.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static char under[PATH_MAX];
static long at = -1, counted, error_number;

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) abort();
    return found;
}

void file_faults_arm(const char *folder, long number, long error) {
    snprintf(under, sizeof under, "%s", folder);
    at = number;
    error_number = error;
    counted = 0;
}

static void note(void) {
    char path[PATH_MAX + 8];
    snprintf(path, sizeof path, "%s.met", under);
    int descriptor = REAL(open)(path, O_WRONLY | O_CREAT, 0600);
    if (descriptor >= 0) close(descriptor);
}

/* A supervisor and the like are armed by their environment: "folder:number:error". */
__attribute__((constructor)) static void from_environment(void) {
    char *given = getenv("GPUDECK_FILE_FAULTS"), *last, *middle;
    if (!given || !*given) return;
    given = strdup(given);
    if ((last = strrchr(given, ':'))) *last++ = 0;
    if (last && (middle = strrchr(given, ':'))) {
        *middle++ = 0;
        file_faults_arm(given, atol(middle), atol(last));
    }
    free(given);
}

static int below(const char *path) {
    size_t length = strlen(under);
    return length && !strncmp(path, under, length) && (path[length] == '/' || !path[length]);
}

static int path_below(int folder, const char *path) {
    char whole[2 * PATH_MAX], link[64];
    if (path[0] == '/' || folder == AT_FDCWD) return below(path);
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t length = readlink(link, whole, PATH_MAX);
    if (length < 0) return 0;
    snprintf(whole + length, sizeof whole - length, "/%s", path);
    return below(whole);
}

static int descriptor_below(int descriptor) {
    char path[PATH_MAX], link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = under[0] ? readlink(link, path, sizeof path - 1) : -1;
    if (length < 0) return 0;
    path[length] = 0;
    return below(path);
}

/* 0: go on; 1: fail, errno is set; 2: a write is to end half way. */
static int met(int is_below, int needs_room, int is_write) {
    if (at < 0 || !is_below) return 0;
    long number = counted++;
    if (number == at) note();
    if (error_number) {
        if (number == at || (number > at && needs_room)) {
            errno = (int)error_number;
            return 1;
        }
        return 0;
    }
    if (number != at) return 0;
    if (is_write) return 2;
    kill(getpid(), SIGKILL);
    pause();
    return 1;
}

#define OPENS(name, lead, folder, pass)                                                                   \
    int name(lead const char *path, int flags, ...) {                                                      \
        mode_t mode = 0;                                                                                   \
        if (flags & (O_CREAT | __O_TMPFILE)) {                                                             \
            va_list more;                                                                                  \
            va_start(more, flags);                                                                         \
            mode = va_arg(more, mode_t);                                                                   \
            va_end(more);                                                                                  \
        }                                                                                                  \
        if ((flags & O_ACCMODE) != O_RDONLY && met(path_below(folder, path), !!(flags & O_CREAT), 0))      \
            return -1;                                                                                     \
        return REAL(name)(pass path, flags, mode);                                                         \
    }
#define COMMA ,
OPENS(open, , AT_FDCWD, )
OPENS(open64, , AT_FDCWD, )
OPENS(openat, int folder COMMA, folder, folder COMMA)
OPENS(openat64, int folder COMMA, folder, folder COMMA)

ssize_t write(int descriptor, const void *bytes, size_t size) {
    switch (at < 0 ? 0 : met(descriptor_below(descriptor), 1, 1)) {
    case 1:
        return -1;
    case 2:
        if (REAL(write)(descriptor, bytes, size / 2) < 0) abort();
        kill(getpid(), SIGKILL);
        pause();
    }
    return REAL(write)(descriptor, bytes, size);
}

#define ONE(result, name, parameters, where, room, pass)           \
    result name parameters { return met(where, room, 0) ? -1 : REAL(name) pass; }

ONE(int, ftruncate, (int d, off_t size), descriptor_below(d), 1, (d, size))
ONE(int, ftruncate64, (int d, off64_t size), descriptor_below(d), 1, (d, size))
ONE(int, truncate, (const char *p, off_t size), below(p), 1, (p, size))
ONE(int, truncate64, (const char *p, off64_t size), below(p), 1, (p, size))
ONE(int, fsync, (int d), descriptor_below(d), 1, (d))
ONE(int, fdatasync, (int d), descriptor_below(d), 1, (d))
ONE(int, fchmod, (int d, mode_t m), descriptor_below(d), 0, (d, m))
ONE(int, chmod, (const char *p, mode_t m), below(p), 0, (p, m))
ONE(int, rename, (const char *from, const char *to), below(to), 0, (from, to))
ONE(int, renameat, (int f, const char *from, int t, const char *to), path_below(t, to), 0, (f, from, t, to))
ONE(int, link, (const char *from, const char *to), below(to), 1, (from, to))
ONE(int, linkat, (int f, const char *from, int t, const char *to, int flags), path_below(t, to), 1, (f, from, t, to, flags))
ONE(int, symlink, (const char *to, const char *p), below(p), 1, (to, p))
ONE(int, unlink, (const char *p), below(p), 0, (p))
ONE(int, unlinkat, (int f, const char *p, int flags), path_below(f, p), 0, (f, p, flags))
ONE(int, mkdir, (const char *p, mode_t m), below(p), 1, (p, m))
ONE(int, mkdirat, (int f, const char *p, mode_t m), path_below(f, p), 1, (f, p, m))
ONE(int, rmdir, (const char *p), below(p), 0, (p))
