/* Stops a process at the n-th change that it makes to files: kills it there, or has no room on the disk from there on.

Loaded by LD_PRELOAD, so that writes of native libraries count as well.  checks/faults.py builds and arms it. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OFF, COUNT, KILL, FULL };
enum { SHRINKS, KEEPS, GROWS }; /* a full disk refuses what grows; what keeps its size it may refuse once */

static int how;
static long at;
static atomic_long *seen; /* shared with the process that forked this one */

__attribute__((constructor)) static void begin(void) {
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

void faults_arm(int way, long n) {
    atomic_store(seen, 0);
    at = n;
    how = way;
}

long faults_seen(void) { return atomic_load(seen); }

/* 0: this change is made; 1: it fails; 2: it is the first that fails. */
static int due(int kind) {
    if (how == OFF) return 0;
    long now = atomic_fetch_add(seen, 1) + 1;
    if (how == KILL) return now == at ? 2 : 0;
    if (how != FULL || now < at || kind == SHRINKS) return 0;
    return now == at ? 2 : kind == GROWS;
}

static int failed(void) {
    if (how == KILL) {
        kill(getpid(), SIGKILL);
        for (;;) pause();
    }
    errno = ENOSPC;
    return -1;
}

static int regular(int file) {
    struct stat found;
    int before = errno, is = how != OFF && fstat(file, &found) == 0 && S_ISREG(found.st_mode);
    errno = before;
    return is;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* A file or folder changes, in one step. */
#define CHANGE(kind, name, declared, ...) \
    int name declared { return due(kind) ? failed() : REAL(name)(__VA_ARGS__); }

CHANGE(KEEPS, rename, (const char *a, const char *b), a, b)
CHANGE(KEEPS, renameat, (int i, const char *a, int j, const char *b), i, a, j, b)
CHANGE(KEEPS, renameat2, (int i, const char *a, int j, const char *b, unsigned int flags), i, a, j, b, flags)
CHANGE(GROWS, link, (const char *a, const char *b), a, b)
CHANGE(GROWS, linkat, (int i, const char *a, int j, const char *b, int flags), i, a, j, b, flags)
CHANGE(GROWS, symlink, (const char *a, const char *b), a, b)
CHANGE(GROWS, mkdir, (const char *path, mode_t mode), path, mode)
CHANGE(GROWS, mkdirat, (int i, const char *path, mode_t mode), i, path, mode)
CHANGE(SHRINKS, rmdir, (const char *path), path)
CHANGE(SHRINKS, unlink, (const char *path), path)
CHANGE(SHRINKS, unlinkat, (int i, const char *path, int flags), i, path, flags)
CHANGE(KEEPS, fsync, (int file), file)
CHANGE(KEEPS, fdatasync, (int file), file)
CHANGE(KEEPS, ftruncate, (int file, off_t size), file, size)
CHANGE(KEEPS, ftruncate64, (int file, off64_t size), file, size)

/* Bytes go to a file: half of them arrive before it fails. */
#define WRITE(name, declared, all, half) \
    ssize_t name declared { \
        int fault = regular(file) ? due(GROWS) : 0; \
        if (fault == 0) return REAL(name) all; \
        if (fault == 2 && size > 1) { \
            ssize_t done = REAL(name) half; \
            if (how != KILL) return done; \
        } \
        return failed(); \
    }

WRITE(write, (int file, const void *data, size_t size), (file, data, size), (file, data, size / 2))
WRITE(pwrite, (int file, const void *data, size_t size, off_t to), (file, data, size, to), (file, data, size / 2, to))
WRITE(pwrite64, (int file, const void *data, size_t size, off64_t to), (file, data, size, to), (file, data, size / 2, to))
WRITE(writev, (int file, const struct iovec *data, int size), (file, data, size), (file, data, size / 2))
WRITE(sendfile, (int file, int from, off_t *begin, size_t size), (file, from, begin, size), (file, from, begin, size / 2))
WRITE(sendfile64, (int file, int from, off64_t *begin, size_t size), (file, from, begin, size),
      (file, from, begin, size / 2))

ssize_t copy_file_range(int from, off64_t *a, int to, off64_t *b, size_t size, unsigned int flags) {
    return due(GROWS) ? failed() : REAL(copy_file_range)(from, a, to, b, size, flags);
}

int posix_fallocate(int file, off_t begin, off_t size) {
    return due(GROWS) ? (failed(), ENOSPC) : REAL(posix_fallocate)(file, begin, size);
}

int posix_fallocate64(int file, off64_t begin, off64_t size) {
    return due(GROWS) ? (failed(), ENOSPC) : REAL(posix_fallocate64)(file, begin, size);
}

/* A file is made or emptied. */
#define OPEN(name, declared, last, ...) \
    int name declared { \
        mode_t mode = 0; \
        if (flags & (O_CREAT | __O_TMPFILE)) { \
            va_list more; \
            va_start(more, last); \
            mode = va_arg(more, mode_t); \
            va_end(more); \
        } \
        return flags & (O_CREAT | O_TRUNC) && due(GROWS) ? failed() : REAL(name)(__VA_ARGS__, flags, mode); \
    }

OPEN(open, (const char *path, int flags, ...), flags, path)
OPEN(open64, (const char *path, int flags, ...), flags, path)
OPEN(openat, (int folder, const char *path, int flags, ...), flags, folder, path)
OPEN(openat64, (int folder, const char *path, int flags, ...), flags, folder, path)
