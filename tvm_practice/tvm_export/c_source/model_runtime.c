/* What compiled functions need of TVM's runtime: memory, errors, and threads for parallel loops.
 * One for all models of a program. Where there is no pthread.h (WebAssembly), loops run on the caller. */
#include "model_runtime.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if !defined(__wasm__) && !defined(MODEL_NO_THREADS)
#define WITH_THREADS 1
#include <pthread.h>
#include <stdatomic.h>
#else
#define WITH_THREADS 0
#endif

enum { MOST_THREADS = 64, ALIGNMENT = 64, SPINS = 20000 };

/* Errors. */

static char message[512];

const char* model_last_error(void) { return message; }

/* Called by a function whose check fails. */
void TVMFFIErrorSetRaisedFromCStrParts(const char* kind, const char** parts, int32_t count) {
  size_t used = (size_t)snprintf(message, sizeof message, "%s: ", kind);
  for (int32_t i = 0; i < count && used < sizeof message; ++i) {
    used += (size_t)snprintf(message + used, sizeof message - used, "%s", parts[i] ? parts[i] : "");
  }
}

/* Memory within one function. */

static void* allocate(int device, int id, uint64_t size, int code, int bits) {
  (void)device, (void)id, (void)code, (void)bits;
  return aligned_alloc(ALIGNMENT, (size_t)((size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT));
}

static int release(int device, int id, void* memory) {
  (void)device, (void)id;
  free(memory);
  return 0;
}

/* Threads. A loop's body divides the iterations by its environment's count. */

typedef struct {
  void* sync;
  int32_t count;
} Environment;
typedef int (*Body)(int task, Environment* environment, void* data);

static int threads = 1;

#if WITH_THREADS
/* A launch raises `round`; each worker runs its task and lowers `left`. Workers look for the next round
 * for a while before they sleep: a model's loops follow each other closely. */
static struct {
  pthread_mutex_t lock;
  pthread_cond_t begin;
  atomic_uint round;
  atomic_int left, failed;
  int started;
  Body body;
  void* data;
  Environment environment;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .begin = PTHREAD_COND_INITIALIZER};

static void* work(void* argument) {
  int task = (int)(intptr_t)argument;
  unsigned seen = 0;
  for (;;) {
    int spins = 0;
    while (atomic_load(&pool.round) == seen && spins < SPINS) ++spins;
    if (atomic_load(&pool.round) == seen) {
      pthread_mutex_lock(&pool.lock);
      while (atomic_load(&pool.round) == seen) pthread_cond_wait(&pool.begin, &pool.lock);
      pthread_mutex_unlock(&pool.lock);
    }
    ++seen;
    if (task < pool.environment.count &&
        pool.body(task, &pool.environment, pool.data) != 0) {
      atomic_store(&pool.failed, 1);
    }
    atomic_fetch_sub(&pool.left, 1);
  }
  return NULL;
}

static void start(void) {
  while (pool.started < threads - 1) {
    pthread_t made;
    if (pthread_create(&made, NULL, work, (void*)(intptr_t)(pool.started + 1)) != 0) break;
    pthread_detach(made);
    ++pool.started;
  }
}
#endif

static int launch(Body body, void* data, int wanted) {
  int count = wanted > 0 && wanted < threads ? wanted : threads;
#if WITH_THREADS
  if (count > 1 && pool.started < threads - 1 && atomic_load(&pool.round) == 0) start();
  if (count > pool.started + 1) count = pool.started + 1;
  if (count > 1) {
    pthread_mutex_lock(&pool.lock);
    pool.body = body, pool.data = data, pool.environment.count = count;
    atomic_store(&pool.failed, 0);
    atomic_store(&pool.left, pool.started);
    atomic_fetch_add(&pool.round, 1);
    pthread_cond_broadcast(&pool.begin);
    pthread_mutex_unlock(&pool.lock);
    int status = body(0, &pool.environment, data);
    while (atomic_load(&pool.left) > 0) {}
    return status != 0 || atomic_load(&pool.failed) ? -1 : 0;
  }
#else
  (void)count;
#endif
  Environment alone = {NULL, 1};
  return body(0, &alone, data);
}

void model_use_threads(int count) {
  threads = count < 1 ? 1 : count > MOST_THREADS ? MOST_THREADS : count;
}

/* By these names compiled functions reach them. */
void* (*__TVMBackendAllocWorkspace)(int, int, uint64_t, int, int) = allocate;
int (*__TVMBackendFreeWorkspace)(int, int, void*) = release;
int (*__TVMBackendParallelLaunch)(Body, void*, int) = launch;
