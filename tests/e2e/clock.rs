//! A clock for one server alone, which a test sets: what takes hours elsewhere takes a leap.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A library before the C library's own: its answers to what the time is are the kernel's and as many seconds more as stand
/// in a file. Waits until an instant are made ones of the kernel's clock again; times since the host's start stay as they are.
const LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long *more;
static int (*wait_until)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

__attribute__((constructor)) static void start(void) {
  int file = open(SECONDS_FILE, O_RDONLY);
  void *at = file < 0 ? MAP_FAILED : mmap(0, sizeof *more, PROT_READ, MAP_SHARED, file, 0);
  if (at != MAP_FAILED) more = at;
  if (file >= 0) close(file);
  wait_until = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
  if (!wait_until) wait_until = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
}

static long seconds(void) { return more ? *more : 0; }

int clock_gettime(clockid_t clock, struct timespec *to) {
  int failed = syscall(SYS_clock_gettime, clock, to);
  if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) to->tv_sec += seconds();
  return failed;
}

int gettimeofday(struct timeval *restrict to, void *restrict zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  to->tv_sec = now.tv_sec;
  to->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *to) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (to) *to = now.tv_sec;
  return now.tv_sec;
}

int pthread_cond_timedwait(pthread_cond_t *restrict one, pthread_mutex_t *restrict mutex, const struct timespec *restrict until) {
  struct timespec at = *until;
  /* No host has run for so long: it is a date. */
  if (at.tv_sec > 1000000000) at.tv_sec -= seconds();
  return wait_until(one, mutex, &at);
}
"#;

/// An hour, in seconds.
pub const HOUR: i64 = 3600;

/// The clock, and the library that a server has to be started with to go by it.
pub struct Clock {
    seconds: File,
    library: PathBuf,
}

impl Clock {
    /// Makes one in a folder, set to this many seconds from now.
    pub fn set_to(folder: &Path, seconds: i64) -> Self {
        let (file, source, library) =
            (folder.join("seconds"), folder.join("clock.c"), folder.join("clock.so"));
        fs::write(&file, seconds.to_ne_bytes()).unwrap();
        fs::write(&source, LIBRARY).unwrap();
        let output = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-Wno-nonnull-compare"])
            .arg(format!("-DSECONDS_FILE=\"{}\"", file.display()))
            .args(["-o".as_ref(), library.as_os_str(), source.as_os_str(), "-ldl".as_ref()])
            .output()
            .expect("a C compiler is missing: scripts/install-deps installs it");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self { seconds: File::options().write(true).open(file).unwrap(), library }
    }

    /// Sets it to this many seconds from now.
    pub fn leap(&self, seconds: i64) {
        self.seconds.write_all_at(&seconds.to_ne_bytes(), 0).unwrap();
    }

    /// The library that a server is preloaded with.
    pub fn library(&self) -> Option<&Path> {
        Some(&self.library)
    }
}
