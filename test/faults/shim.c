/*
 * Stands between a program and the disk: it records, fails or kills at the calls that change files in one directory.
 * Compile it with `cc -shared -fPIC -O2 -o shim.so shim.c -ldl -lpthread` (test/faults/shim.ts does), and start the
 * program with LD_PRELOAD=shim.so and these variables:
 *
 *   FAULTS_DIR    the watched directory: an absolute path without links, without a slash at its end
 *   FAULTS_LOG    record: appends every call to this file; the format is read by test/faults/log.ts
 *   FAULTS_AT     KIND:N, the call at which a fault happens: the Nth of this kind in this process, from 1 on; KIND is
 *                 open, write, truncate, sync, rename, unlink, mkdir, chmod, or any
 *   FAULTS_FILE   counts only calls on paths that end with this, such as `catalog.db-wal`; a rename has two paths
 *   FAULTS_DO     EIO, ENOSPC (the call fails and does nothing), kill-before, kill-after (SIGKILL before or after it)
 *   FAULTS_HIT    a file that gets one line for the fault: KIND, number and path. If it does not exist after the
 *                 program has ended, there is no Nth call
 *
 * Several processes and threads may record into one log: a lock keeps each call and its record together, so that the
 * order of the log is the order of the calls. Writes to stdout and stderr are recorded too, because they are what the
 * program has promised to a person.
 *
 * Memory maps are not seen. SQLite maps only the -shm, which it rebuilds after a crash (`mmap_size` is 0 here).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MAX_FD = 65536, LOG_FD = 60000 };

/* The numbers are part of the log's format. */
enum { OP_CREATE = 1, OP_WRITE, OP_TRUNCATE, OP_SYNC, OP_RENAME, OP_UNLINK, OP_MKDIR, OP_LINK, OP_OUTPUT };

/* In front of every record: then the first path, the second path and the bytes. */
struct record {
  uint32_t op;
  int32_t pid;
  int32_t error;
  uint32_t path_length;
  uint32_t path2_length;
  uint32_t size;
  uint64_t inode;
  uint64_t offset;
};

static const char *directory, *fault_kind, *fault_file, *fault_do, *hit_path;
static size_t directory_length;
static long fault_at;
static int log_fd = -1;
static long counted;
/* What a descriptor was opened for, and its inode: programs also close descriptors by system calls of their own. */
static char *fd_path[MAX_FD];
static uint64_t fd_inode[MAX_FD];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static __thread int is_inside;

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name) {
  void *found = dlsym(RTLD_NEXT, name);
  if (found == NULL) abort();
  return found;
}

__attribute__((constructor)) static void start(void) {
  directory = getenv("FAULTS_DIR");
  if (directory == NULL) return;
  directory_length = strlen(directory);
  fault_file = getenv("FAULTS_FILE");
  fault_do = getenv("FAULTS_DO");
  hit_path = getenv("FAULTS_HIT");
  const char *at = getenv("FAULTS_AT");
  const char *colon = at == NULL ? NULL : strchr(at, ':');
  if (colon != NULL) {
    fault_kind = strndup(at, (size_t)(colon - at));
    fault_at = atol(colon + 1);
  }
  const char *log_path = getenv("FAULTS_LOG");
  if (log_path == NULL) return;
  int fd = REAL(open)(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  /* A high number, so that the program gets the same numbers as without this. */
  log_fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, LOG_FD);
  if (log_fd < 0) log_fd = fcntl(fd, F_DUPFD_CLOEXEC, 500);
  if (log_fd < 0) abort();
  REAL(close)(fd);
}

/* The absolute path of what a call names; the last part may not exist. Returns 0 if it is not watched. */
static int watched_path(int dirfd, const char *path, char out[PATH_MAX]) {
  if (directory == NULL || is_inside || path == NULL) return 0;
  if (path[0] == '/') {
    if (snprintf(out, PATH_MAX, "%s", path) >= PATH_MAX) return 0;
  } else {
    char base[PATH_MAX];
    if (dirfd == AT_FDCWD) {
      if (getcwd(base, sizeof base) == NULL) return 0;
    } else {
      char link[64];
      snprintf(link, sizeof link, "/proc/self/fd/%d", dirfd);
      ssize_t length = readlink(link, base, sizeof base - 1);
      if (length < 0) return 0;
      base[length] = 0;
    }
    if ((size_t)snprintf(out, PATH_MAX, "%s/%s", base, path) >= PATH_MAX) return 0;
  }
  char next = strncmp(out, directory, directory_length) == 0 ? out[directory_length] : 1;
  return next == '/' || next == 0;
}

static uint64_t inode_of(int fd) {
  struct stat found;
  return fstat(fd, &found) == 0 ? found.st_ino : 0;
}

static uint64_t inode_at(const char *path) {
  struct stat found;
  return lstat(path, &found) == 0 ? found.st_ino : 0;
}

static const char *watched_fd(int fd) {
  if (directory == NULL || is_inside || fd < 0 || fd >= MAX_FD || fd_path[fd] == NULL) return NULL;
  return inode_of(fd) == fd_inode[fd] ? fd_path[fd] : NULL;
}

static int ends_with(const char *path, const char *end) {
  size_t length = strlen(path), end_length = strlen(end);
  return length >= end_length && strcmp(path + length - end_length, end) == 0;
}

/* What happens at this call; NULL for nothing. */
static const char *fault(const char *kind, const char *path, const char *path2) {
  if (fault_kind == NULL || fault_do == NULL) return NULL;
  if (strcmp(fault_kind, "any") != 0 && strcmp(fault_kind, kind) != 0) return NULL;
  if (fault_file != NULL && !ends_with(path, fault_file) && (path2 == NULL || !ends_with(path2, fault_file))) return NULL;
  long number = __atomic_add_fetch(&counted, 1, __ATOMIC_SEQ_CST);
  if (number != fault_at) return NULL;
  if (hit_path != NULL) {
    char line[PATH_MAX + 64];
    int length = snprintf(line, sizeof line, "%s %ld %s\n", kind, number, path);
    int fd = REAL(open)(hit_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || REAL(write)(fd, line, (size_t)length) != length) abort();
    REAL(close)(fd);
  }
  if (strcmp(fault_do, "kill-before") == 0) kill(getpid(), SIGKILL);
  return fault_do;
}

/* Sets errno if the call fails instead of being made. */
static int fails(const char *what) {
  if (what == NULL) return 0;
  if (strcmp(what, "EIO") == 0) errno = EIO;
  else if (strcmp(what, "ENOSPC") == 0) errno = ENOSPC;
  else return 0;
  return 1;
}

static void after(const char *what) {
  if (what != NULL && strcmp(what, "kill-after") == 0) kill(getpid(), SIGKILL);
}

/* Keeps a call and its record together. */
static void begin(void) {
  is_inside = 1;
  if (log_fd < 0) return;
  pthread_mutex_lock(&mutex);
  flock(log_fd, LOCK_EX);
}

static void end(void) {
  int error = errno;
  if (log_fd >= 0) {
    flock(log_fd, LOCK_UN);
    pthread_mutex_unlock(&mutex);
  }
  is_inside = 0;
  errno = error;
}

static void note(uint32_t op, int error, uint64_t inode, uint64_t offset, const char *path, const char *path2,
                 const struct iovec *parts, int count, size_t size) {
  if (log_fd < 0) return;
  int kept = errno;
  struct record head = {op, (int32_t)getpid(), error, (uint32_t)strlen(path),
                        path2 == NULL ? 0 : (uint32_t)strlen(path2), (uint32_t)size, inode, offset};
  size_t total = sizeof head + head.path_length + head.path2_length + size;
  char *bytes = malloc(total), *at = bytes;
  if (bytes == NULL) abort();
  at = mempcpy(at, &head, sizeof head);
  at = mempcpy(at, path, head.path_length);
  if (path2 != NULL) at = mempcpy(at, path2, head.path2_length);
  for (int i = 0; i < count && size > 0; i++) {
    size_t part = parts[i].iov_len < size ? parts[i].iov_len : size;
    at = mempcpy(at, parts[i].iov_base, part);
    size -= part;
  }
  if (REAL(write)(log_fd, bytes, total) != (ssize_t)total) abort();
  free(bytes);
  errno = kept;
}

/* Makes a call on a watched path, unless a fault lets it fail, and records it: `op`, `inode`, `at` and the paths. */
#define WATCHED(kind, make, op, inode, at, path, path2)               \
  begin();                                                            \
  const char *what = fault(kind, path, path2);                        \
  int result = -1;                                                    \
  if (!fails(what)) {                                                 \
    result = make;                                                    \
    if (result == 0) note(op, 0, inode, at, path, path2, NULL, 0, 0); \
    after(what);                                                      \
  }                                                                   \
  end();                                                              \
  return result;

static int open_watched(int dirfd, const char *path, int flags, mode_t mode) {
  char full[PATH_MAX];
  if (!watched_path(dirfd, path, full)) {
    int fd = REAL(openat)(dirfd, path, flags, mode);
    if (fd >= 0 && fd < MAX_FD && !is_inside) fd_path[fd] = NULL;
    return fd;
  }
  begin();
  const char *what = fault("open", full, NULL);
  int fd = -1;
  if (!fails(what)) {
    uint64_t before = (flags & O_CREAT) != 0 ? inode_at(full) : 1;
    fd = REAL(openat)(dirfd, path, flags, mode);
    if (fd >= 0) {
      if (before == 0) note(OP_CREATE, 0, inode_of(fd), 0, full, NULL, NULL, 0, 0);
      else if ((flags & O_TRUNC) != 0) note(OP_TRUNCATE, 0, inode_of(fd), 0, full, NULL, NULL, 0, 0);
      if (fd < MAX_FD) {
        fd_inode[fd] = inode_of(fd);
        fd_path[fd] = strdup(full);
      }
    }
    after(what);
  }
  end();
  return fd;
}

#define OPEN(name, dirfd, ...)                     \
  int name(__VA_ARGS__, int flags, ...) {          \
    mode_t mode = 0;                               \
    if ((flags & (O_CREAT | O_TMPFILE)) != 0) {    \
      va_list list;                                \
      va_start(list, flags);                       \
      mode = va_arg(list, mode_t);                 \
      va_end(list);                                \
    }                                              \
    return open_watched(dirfd, path, flags, mode); \
  }

OPEN(open, AT_FDCWD, const char *path)
OPEN(open64, AT_FDCWD, const char *path)
OPEN(openat, dirfd, int dirfd, const char *path)
OPEN(openat64, dirfd, int dirfd, const char *path)
int creat(const char *path, mode_t mode) { return open_watched(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

int close(int fd) {
  if (fd >= 0 && fd < MAX_FD && !is_inside) fd_path[fd] = NULL;
  return REAL(close)(fd);
}

/* Writing. `at` is -1 for the file's own position. */

static ssize_t make_write(int fd, const struct iovec *parts, int count, off64_t at) {
  return at < 0 ? REAL(writev)(fd, parts, count) : REAL(pwritev64)(fd, parts, count, at);
}

static ssize_t write_watched(int fd, const struct iovec *parts, int count, off64_t at) {
  const char *path = watched_fd(fd);
  int is_output = directory != NULL && log_fd >= 0 && !is_inside && (fd == 1 || fd == 2);
  if (path == NULL && !is_output) return make_write(fd, parts, count, at);
  begin();
  ssize_t done = -1;
  if (path == NULL) {
    done = make_write(fd, parts, count, at);
    if (done > 0) note(OP_OUTPUT, 0, (uint64_t)fd, 0, "", NULL, parts, count, (size_t)done);
    end();
    return done;
  }
  const char *what = fault("write", path, NULL);
  if (!fails(what)) {
    done = make_write(fd, parts, count, at);
    if (done > 0) {
      /* A file that is open for appending ignores `at`. */
      int appends = (fcntl(fd, F_GETFL) & O_APPEND) != 0;
      struct stat found;
      off64_t offset = at;
      if (appends && fstat(fd, &found) == 0) offset = found.st_size - done;
      else if (at < 0) offset = lseek64(fd, 0, SEEK_CUR) - done;
      note(OP_WRITE, 0, inode_of(fd), (uint64_t)offset, path, NULL, parts, count, (size_t)done);
    }
    after(what);
  }
  end();
  return done;
}

ssize_t write(int fd, const void *bytes, size_t size) {
  if (is_inside || (watched_fd(fd) == NULL && fd > 2)) return REAL(write)(fd, bytes, size);
  struct iovec part = {(void *)bytes, size};
  return write_watched(fd, &part, 1, -1);
}
ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at) {
  struct iovec part = {(void *)bytes, size};
  return write_watched(fd, &part, 1, at);
}
ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) { return pwrite64(fd, bytes, size, at); }
ssize_t writev(int fd, const struct iovec *parts, int count) {
  if (is_inside || (watched_fd(fd) == NULL && fd > 2)) return REAL(writev)(fd, parts, count);
  return write_watched(fd, parts, count, -1);
}
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at) {
  return write_watched(fd, parts, count, at);
}
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) { return write_watched(fd, parts, count, at); }

static int truncate_watched(int fd, off64_t size) {
  const char *path = watched_fd(fd);
  if (path == NULL) return REAL(ftruncate64)(fd, size);
  WATCHED("truncate", REAL(ftruncate64)(fd, size), OP_TRUNCATE, inode_of(fd), (uint64_t)size, path, NULL)
}
int ftruncate(int fd, off_t size) { return truncate_watched(fd, size); }
int ftruncate64(int fd, off64_t size) { return truncate_watched(fd, size); }

/* A sync that fails is recorded: the kernel may have dropped what was to be written, and never writes it. */
static int sync_watched(int fd, int (*make)(int)) {
  const char *path = watched_fd(fd);
  if (path == NULL) return make(fd);
  begin();
  const char *what = fault("sync", path, NULL);
  int result = -1;
  if (fails(what)) {
    note(OP_SYNC, errno, inode_of(fd), 0, path, NULL, NULL, 0, 0);
  } else {
    result = make(fd);
    if (result == 0) note(OP_SYNC, 0, inode_of(fd), 0, path, NULL, NULL, 0, 0);
    after(what);
  }
  end();
  return result;
}
int fsync(int fd) { return sync_watched(fd, REAL(fsync)); }
int fdatasync(int fd) { return sync_watched(fd, REAL(fdatasync)); }

/* Names. */

static int rename_watched(int dirfd, const char *from, int dirfd2, const char *to) {
  char full[PATH_MAX], full2[PATH_MAX];
  if (!watched_path(dirfd, from, full) || !watched_path(dirfd2, to, full2)) return REAL(renameat)(dirfd, from, dirfd2, to);
  WATCHED("rename", REAL(renameat)(dirfd, from, dirfd2, to), OP_RENAME, inode_at(full2), 0, full, full2)
}
int rename(const char *from, const char *to) { return rename_watched(AT_FDCWD, from, AT_FDCWD, to); }
int renameat(int dirfd, const char *from, int dirfd2, const char *to) { return rename_watched(dirfd, from, dirfd2, to); }

static int link_watched(int dirfd, const char *from, int dirfd2, const char *to, int flags) {
  char full[PATH_MAX];
  if (!watched_path(dirfd2, to, full)) return REAL(linkat)(dirfd, from, dirfd2, to, flags);
  WATCHED("rename", REAL(linkat)(dirfd, from, dirfd2, to, flags), OP_LINK, inode_at(full), 0, full, NULL)
}
int link(const char *from, const char *to) { return link_watched(AT_FDCWD, from, AT_FDCWD, to, 0); }
int linkat(int dirfd, const char *from, int dirfd2, const char *to, int flags) {
  return link_watched(dirfd, from, dirfd2, to, flags);
}

static int unlink_watched(int dirfd, const char *path, int flags) {
  char full[PATH_MAX];
  if (!watched_path(dirfd, path, full)) return REAL(unlinkat)(dirfd, path, flags);
  WATCHED("unlink", REAL(unlinkat)(dirfd, path, flags), OP_UNLINK, 0, 0, full, NULL)
}
int unlink(const char *path) { return unlink_watched(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlink_watched(AT_FDCWD, path, AT_REMOVEDIR); }
int unlinkat(int dirfd, const char *path, int flags) { return unlink_watched(dirfd, path, flags); }

static int mkdir_watched(int dirfd, const char *path, mode_t mode) {
  char full[PATH_MAX];
  if (!watched_path(dirfd, path, full)) return REAL(mkdirat)(dirfd, path, mode);
  WATCHED("mkdir", REAL(mkdirat)(dirfd, path, mode), OP_MKDIR, inode_at(full), 0, full, NULL)
}
int mkdir(const char *path, mode_t mode) { return mkdir_watched(AT_FDCWD, path, mode); }
int mkdirat(int dirfd, const char *path, mode_t mode) { return mkdir_watched(dirfd, path, mode); }

int fchmod(int fd, mode_t mode) {
  const char *path = watched_fd(fd);
  return path != NULL && fails(fault("chmod", path, NULL)) ? -1 : REAL(fchmod)(fd, mode);
}
int chmod(const char *path, mode_t mode) {
  char full[PATH_MAX];
  return watched_path(AT_FDCWD, path, full) && fails(fault("chmod", full, NULL)) ? -1 : REAL(chmod)(path, mode);
}
