/* Loaded into a program before the C library: notes every change of a file below POWER_LOSS_FOLDER, and every sync,
   in the order in which they happen, in POWER_LOSS_LOG. What would be left of them is found out afterwards. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int is_watched(const char *path) {
    const char *folder = getenv("POWER_LOSS_FOLDER");
    return folder && path && strncmp(path, folder, strlen(folder)) == 0 && !strstr(path, "-shm");
}

static int path_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_watched(path) && !strstr(path, " (deleted)");
}

/* op, the lengths of both texts, the offset; then the texts */
static void note(char op, const char *path, uint64_t offset, const void *data, uint64_t length) {
    static int log_fd = -1;
    if (log_fd < 0) log_fd = REAL(open)(getenv("POWER_LOSS_LOG"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    uint64_t head[4] = {(uint64_t)op, strlen(path), length, offset};
    struct iovec parts[3] = {{head, sizeof head}, {(void *)path, head[1]}, {(void *)data, length}};
    if (REAL(writev)(log_fd, parts, 3) < 0) abort();
}

static int opened(int fd, const char *path, int flags, int was_there) {
    char whole[PATH_MAX];
    if (fd < 0 || !path_of(fd, whole)) return fd;
    (void)path;
    if ((flags & O_CREAT) && !was_there) note('C', whole, 0, "", 0);
    else if (flags & O_TRUNC) note('T', whole, 0, "", 0);
    return fd;
}

#define OPENS(name)                                                        \
    int name(const char *path, int flags, ...) {                           \
        va_list more; va_start(more, flags);                               \
        mode_t mode = va_arg(more, mode_t); va_end(more);                  \
        struct stat found;                                                 \
        pthread_mutex_lock(&lock);                                         \
        int was_there = stat(path, &found) == 0;                           \
        int fd = opened(REAL(name)(path, flags, mode), path, flags, was_there); \
        pthread_mutex_unlock(&lock);                                       \
        return fd;                                                         \
    }
OPENS(open)
OPENS(open64)

#define OPENS_AT(name)                                                     \
    int name(int at, const char *path, int flags, ...) {                   \
        va_list more; va_start(more, flags);                               \
        mode_t mode = va_arg(more, mode_t); va_end(more);                  \
        struct stat found;                                                 \
        pthread_mutex_lock(&lock);                                         \
        int was_there = fstatat(at, path, &found, 0) == 0;                 \
        int fd = opened(REAL(name)(at, path, flags, mode), path, flags, was_there); \
        pthread_mutex_unlock(&lock);                                       \
        return fd;                                                         \
    }
OPENS_AT(openat)
OPENS_AT(openat64)

ssize_t write(int fd, const void *data, size_t length) {
    char path[PATH_MAX];
    if (!path_of(fd, path)) return REAL(write)(fd, data, length);
    pthread_mutex_lock(&lock);
    struct stat found;
    fstat(fd, &found);
    off_t at = fcntl(fd, F_GETFL) & O_APPEND ? found.st_size : lseek(fd, 0, SEEK_CUR);
    ssize_t written = REAL(write)(fd, data, length);
    if (written > 0) note('W', path, at, data, written);
    pthread_mutex_unlock(&lock);
    return written;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    char path[PATH_MAX];
    if (!path_of(fd, path)) return REAL(writev)(fd, parts, count);
    pthread_mutex_lock(&lock);
    struct stat found;
    fstat(fd, &found);
    off_t at = fcntl(fd, F_GETFL) & O_APPEND ? found.st_size : lseek(fd, 0, SEEK_CUR);
    ssize_t written = REAL(writev)(fd, parts, count), left = written;
    for (int number = 0; number < count && left > 0; number++) {
        size_t length = parts[number].iov_len < (size_t)left ? parts[number].iov_len : (size_t)left;
        note('W', path, at, parts[number].iov_base, length);
        at += length;
        left -= length;
    }
    pthread_mutex_unlock(&lock);
    return written;
}

#define WRITES_AT(name)                                                    \
    ssize_t name(int fd, const void *data, size_t length, off_t at) {      \
        char path[PATH_MAX];                                               \
        if (!path_of(fd, path)) return REAL(name)(fd, data, length, at);   \
        pthread_mutex_lock(&lock);                                         \
        ssize_t written = REAL(name)(fd, data, length, at);                \
        if (written > 0) note('W', path, at, data, written);               \
        pthread_mutex_unlock(&lock);                                       \
        return written;                                                    \
    }
WRITES_AT(pwrite)
WRITES_AT(pwrite64)

#define TRUNCATES(name)                                                    \
    int name(int fd, off_t length) {                                       \
        char path[PATH_MAX];                                               \
        int is_ours = path_of(fd, path);                                   \
        pthread_mutex_lock(&lock);                                         \
        int result = REAL(name)(fd, length);                               \
        if (result == 0 && is_ours) note('T', path, length, "", 0);        \
        pthread_mutex_unlock(&lock);                                       \
        return result;                                                     \
    }
TRUNCATES(ftruncate)
TRUNCATES(ftruncate64)

/* Noted before the real one: what is synced is what was written before it began. */
#define SYNCS(name)                                                        \
    int name(int fd) {                                                     \
        char path[PATH_MAX];                                               \
        struct stat found;                                                 \
        if (path_of(fd, path) && fstat(fd, &found) == 0) {                 \
            pthread_mutex_lock(&lock);                                     \
            note(S_ISDIR(found.st_mode) ? 'D' : 'S', path, 0, "", 0);      \
            pthread_mutex_unlock(&lock);                                   \
        }                                                                  \
        return REAL(name)(fd);                                             \
    }
SYNCS(fsync)
SYNCS(fdatasync)

static int renamed(int result, const char *from, const char *to) {
    if (result == 0 && is_watched(to)) note('R', from, 0, to, strlen(to));
    return result;
}

int rename(const char *from, const char *to) {
    pthread_mutex_lock(&lock);
    int result = renamed(REAL(rename)(from, to), from, to);
    pthread_mutex_unlock(&lock);
    return result;
}

int renameat(int from_at, const char *from, int to_at, const char *to) {
    pthread_mutex_lock(&lock);
    int result = renamed(REAL(renameat)(from_at, from, to_at, to), from, to);
    pthread_mutex_unlock(&lock);
    return result;
}

static int linked(int result, const char *from, const char *to) {
    if (result == 0 && is_watched(to)) note('L', from, 0, to, strlen(to));
    return result;
}

int link(const char *from, const char *to) { return linked(REAL(link)(from, to), from, to); }

int linkat(int from_at, const char *from, int to_at, const char *to, int flags) {
    return linked(REAL(linkat)(from_at, from, to_at, to, flags), from, to);
}

static int removed(int result, const char *path) {
    if (result == 0 && is_watched(path)) note('U', path, 0, "", 0);
    return result;
}

int unlink(const char *path) {
    pthread_mutex_lock(&lock);
    int result = removed(REAL(unlink)(path), path);
    pthread_mutex_unlock(&lock);
    return result;
}

int unlinkat(int at, const char *path, int flags) {
    pthread_mutex_lock(&lock);
    int result = removed(REAL(unlinkat)(at, path, flags), path);
    pthread_mutex_unlock(&lock);
    return result;
}

int mkdir(const char *path, mode_t mode) {
    pthread_mutex_lock(&lock);
    int result = REAL(mkdir)(path, mode);
    if (result == 0 && is_watched(path)) note('M', path, 0, "", 0);
    pthread_mutex_unlock(&lock);
    return result;
}
