/* A disk that fails on demand, between a process and its C library: LD_PRELOAD=frail.so FRAIL_UNDER=/folder program.

   Every call that changes files below FRAIL_UNDER is counted, over all threads. Whoever is in the process says with
   frail_arm what becomes of which; FRAIL_MODE and FRAIL_AT say it from the start. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SOUND, KILLS, KILLS_TORN, SYNC_FAILS, SYNC_LIES };

static atomic_int mode = SOUND;
static atomic_long last = 0, changes = 0, syncs = 0;
static char under[PATH_MAX];

/* From now on: KILLS before the change number `at`; KILLS_TORN half way through it, where it is a write; SYNC_FAILS the
   sync number `at` with EIO, undone; SYNC_LIES every sync is said to be done, and is not. */
void frail_arm(int wanted, long at) {
    const char *from = getenv("FRAIL_UNDER");
    if (from) snprintf(under, sizeof under, "%s", from);
    changes = syncs = 0;
    last = at;
    mode = wanted;
}

long frail_changes(void) { return changes; }
long frail_syncs(void) { return syncs; }

__attribute__((constructor)) static void begin(void) {
    const char *from_the_start = getenv("FRAIL_MODE"), *at = getenv("FRAIL_AT");
    if (from_the_start) frail_arm(atoi(from_the_start), at ? atol(at) : 0);
}

static int concerns(const char *path) {
    size_t length = strlen(under);
    return length && !strncmp(path, under, length);
}

static int concerns_fd(int fd) {
    char link[64], path[PATH_MAX];
    if (mode == SOUND) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return concerns(path);
}

static int concerns_at(int folder, const char *name) {
    if (mode == SOUND) return 0;
    return name[0] == '/' || folder == AT_FDCWD ? concerns(name) : concerns_fd(folder);
}

static void die(void) {
    for (;;) kill(getpid(), SIGKILL);
}

static int is_last(void) { return ++changes == last && (mode == KILLS || mode == KILLS_TORN); }
static void change(void) { if (is_last()) die(); }

#define REAL(name) \
    static __typeof__(name) *real; \
    if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

#define WRITES(name, parameters, whole, half) \
    ssize_t name parameters { \
        REAL(name); \
        if (concerns_fd(fd) && is_last()) { \
            if (mode == KILLS_TORN) half; \
            die(); \
        } \
        return whole; \
    }

WRITES(write, (int fd, const void *from, size_t count), real(fd, from, count), (void)!real(fd, from, count / 2))
WRITES(pwrite, (int fd, const void *from, size_t count, off_t at), real(fd, from, count, at),
       (void)!real(fd, from, count / 2, at))
WRITES(pwrite64, (int fd, const void *from, size_t count, off64_t at), real(fd, from, count, at),
       (void)!real(fd, from, count / 2, at))
WRITES(writev, (int fd, const struct iovec *from, int count), real(fd, from, count), (void)!real(fd, from, count / 2))
WRITES(pwritev, (int fd, const struct iovec *from, int count, off_t at), real(fd, from, count, at),
       (void)!real(fd, from, count / 2, at))

#define SYNCS(name) \
    int name(int fd) { \
        REAL(name); \
        if (concerns_fd(fd)) { \
            change(); \
            if (mode == SYNC_LIES) return 0; \
            if (++syncs == last && mode == SYNC_FAILS) { \
                errno = EIO; \
                return -1; \
            } \
        } \
        return real(fd); \
    }

SYNCS(fsync)
SYNCS(fdatasync)

#define CHANGES(name, parameters, concerned, whole) \
    int name parameters { \
        REAL(name); \
        if (concerned) change(); \
        return whole; \
    }

CHANGES(ftruncate, (int fd, off_t size), concerns_fd(fd), real(fd, size))
CHANGES(ftruncate64, (int fd, off64_t size), concerns_fd(fd), real(fd, size))
CHANGES(posix_fallocate, (int fd, off_t at, off_t count), concerns_fd(fd), real(fd, at, count))
CHANGES(fallocate, (int fd, int how, off_t at, off_t count), concerns_fd(fd), real(fd, how, at, count))
CHANGES(fallocate64, (int fd, int how, off64_t at, off64_t count), concerns_fd(fd), real(fd, how, at, count))
CHANGES(rename, (const char *from, const char *to), concerns_at(AT_FDCWD, to), real(from, to))
CHANGES(renameat, (int from_folder, const char *from, int folder, const char *to), concerns_at(folder, to),
        real(from_folder, from, folder, to))
CHANGES(link, (const char *from, const char *to), concerns_at(AT_FDCWD, to), real(from, to))
CHANGES(linkat, (int from_folder, const char *from, int folder, const char *to, int flags), concerns_at(folder, to),
        real(from_folder, from, folder, to, flags))
CHANGES(unlink, (const char *path), concerns_at(AT_FDCWD, path), real(path))
CHANGES(unlinkat, (int folder, const char *path, int flags), concerns_at(folder, path), real(folder, path, flags))
CHANGES(mkdir, (const char *path, mode_t bits), concerns_at(AT_FDCWD, path), real(path, bits))
CHANGES(mkdirat, (int folder, const char *path, mode_t bits), concerns_at(folder, path), real(folder, path, bits))
CHANGES(rmdir, (const char *path), concerns_at(AT_FDCWD, path), real(path))
CHANGES(chmod, (const char *path, mode_t bits), concerns_at(AT_FDCWD, path), real(path, bits))
CHANGES(fchmod, (int fd, mode_t bits), concerns_fd(fd), real(fd, bits))
CHANGES(fchmodat, (int folder, const char *path, mode_t bits, int flags), concerns_at(folder, path),
        real(folder, path, bits, flags))

#define OPENS(name, parameters, concerned, whole) \
    int name parameters { \
        REAL(name); \
        mode_t bits = 0; \
        if (flags & (O_CREAT | O_TMPFILE)) { \
            va_list rest; \
            va_start(rest, flags); \
            bits = va_arg(rest, mode_t); \
            va_end(rest); \
        } \
        if (flags & (O_CREAT | O_TRUNC) && concerned) change(); \
        return whole; \
    }

OPENS(open, (const char *path, int flags, ...), concerns_at(AT_FDCWD, path), real(path, flags, bits))
OPENS(open64, (const char *path, int flags, ...), concerns_at(AT_FDCWD, path), real(path, flags, bits))
OPENS(openat, (int folder, const char *path, int flags, ...), concerns_at(folder, path),
      real(folder, path, flags, bits))
OPENS(openat64, (int folder, const char *path, int flags, ...), concerns_at(folder, path),
      real(folder, path, flags, bits))
