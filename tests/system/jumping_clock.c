// jumping_clock.c - a wall clock that is an hour ahead for three of every six seconds; the soak preloads it into the router.
//
// The steady clock stays as it is.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

int clock_gettime(clockid_t id, struct timespec *now) {
  static int (*system_clock)(clockid_t, struct timespec *);
  if (!system_clock) system_clock = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  const int failed = system_clock(id, now);
  if (!failed && id == CLOCK_REALTIME && now->tv_sec / 3 % 2 == 1) now->tv_sec += 3600;
  return failed;
}
