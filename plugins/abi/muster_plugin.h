/* SPDX-License-Identifier: Apache-2.0 */
/* The Muster plugin ABI: plain C, depends on nothing. Version log: plugins/abi/README.md. */
#ifndef MUSTER_PLUGIN_H
#define MUSTER_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MUSTER_PLUGIN_MAGIC 0x31304d5253544d55ull /* the bytes "UMTSRM01" in a little-endian file */
#define MUSTER_ABI_MAJOR 1u
#define MUSTER_ABI_MINOR 2u

#if defined(__GNUC__)
#define MUSTER_EXPORT __attribute__((visibility("default")))
#else
#define MUSTER_EXPORT
#endif

/* One process may open session after session, each once the one before is closed: none leaves anything behind
 * that another could notice. Simulated ranks of a node then share a process. */
#define MUSTER_PLUGIN_IN_TURN 1u

/* Who the library is. It holds inline data only, so the host reads it from the ELF file before any of the
 * library's code runs, and refuses a foreign or stale one. `name` and `version` end with a zero byte. */
typedef struct muster_plugin_info {
  uint64_t magic;       /* MUSTER_PLUGIN_MAGIC */
  uint32_t struct_size; /* sizeof(muster_plugin_info) */
  uint32_t abi_major;   /* MUSTER_ABI_MAJOR */
  uint32_t abi_minor;   /* MUSTER_ABI_MINOR */
  uint32_t flags;       /* MUSTER_PLUGIN_..., or 0 */
  char name[64];
  char version[32];
} muster_plugin_info;

/* Result of a call. Anything but MUSTER_OK ends the case as an error with the text given to host->error().
 */
typedef enum muster_status {
  MUSTER_OK = 0,
  MUSTER_ERROR = 1, /* could not be measured */
  MUSTER_UNSUPPORTED =
      2, /* this device or backend lacks what the case needs: the case is skipped, not failed */
  MUSTER_CANCELLED = 3, /* stopped because host->cancelled() said so */
  MUSTER_BAD_PARAMETER = 4,
  /* Since minor 2: an error, because another rank of the group failed or did not answer. It says nothing
   * about this rank's device. */
  MUSTER_PEER_FAILED = 5
} muster_status;

typedef enum muster_log_level {
  MUSTER_LOG_DEBUG = 0,
  MUSTER_LOG_INFO = 1,
  MUSTER_LOG_WARNING = 2,
  MUSTER_LOG_ERROR = 3
} muster_log_level;

typedef struct muster_label {
  const char *key;
  const char *value;
} muster_label;

/* One measurement with every sample. Either `samples` (sample_count >= 1, in base units: FLOP/s, B/s, B, s,
 * Hz, W, degC, ratio, count, bool ...) or `text` (unit "text"). Strings are UTF-8 and only read during the
 * call. */
typedef struct muster_measurement {
  uint32_t struct_size; /* sizeof(muster_measurement) */
  uint32_t label_count;
  const char *metric; /* as declared by describe(), without the plugin's name */
  const char *unit;
  const muster_label *labels; /* beside the case's own parameters, which the host knows */
  const double *samples;
  uint64_t sample_count;
  const char *text; /* NULL for a number */
  double time;      /* seconds on the device's clock when it was taken; negative: now */
  /* Since minor 1: NULL, or when each sample was taken, on the same clock; `time` is that of the last one. */
  const double *times;
} muster_measurement;

/* What the host offers a session. Valid until close() returns; callable from any thread. Slots are only
 * appended. */
typedef struct muster_host {
  uint32_t struct_size;
  uint32_t abi_minor;
  void *context; /* first argument of every function below */
  muster_status (*measurement)(void *context, const muster_measurement *measurement);
  /* fraction in 0..1 of this case, or negative when unknown. */
  muster_status (*progress)(void *context, double fraction, const char *text);
  muster_status (*log)(void *context, muster_log_level level, const char *text);
  /* Keeps `size` bytes as an artifact of this case. `name` is a plain file name. */
  muster_status (*artifact)(void *context, const char *name, const char *media_type, const void *data,
                            uint64_t size);
  /* The reason of the failure that the current call is about to return, and what to do about it (may be
   * NULL). */
  void (*error)(void *context, const char *message, const char *remedy);
  /* Not 0 once the run is to stop: return MUSTER_CANCELLED soon. */
  int (*cancelled)(void *context);
  /* The stage's key-value store, shared by all ranks of its group. A timeout in seconds bounds each wait.
   * Keys are 1 to 512 bytes, values at most 4 MiB; a key is seen by the ranks in the same run of the same
   * case, and set by one of them alone. */
  muster_status (*store_set)(void *context, const char *key, const void *data, uint64_t size);
  /* Waits for `key`; writes at most `capacity` bytes and the value's true size to `size`. Where that is more
   * than `capacity`, the rest was cut: call again with room for it. */
  muster_status (*store_get)(void *context, const char *key, void *data, uint64_t capacity, uint64_t *size,
                             double timeout);
  muster_status (*barrier)(void *context, const char *name, double timeout);
} muster_host;

/* What the plugin offers. Its first field is its size; slots are only ever appended, so an older table is a
 * prefix of a newer one. */
typedef struct muster_plugin_ops {
  uint32_t struct_size; /* sizeof(muster_plugin_ops) */
  uint32_t abi_minor;   /* the minor version that the plugin was written against */
  /* JSON, see plugins/abi/README.md: tests, typed parameters with defaults and units, metrics. Static text.
   */
  const char *(*describe)(void);
  /* Opens one session for one rank. `context_json`: test, backend, device, rank, world, seed (see README). */
  muster_status (*open)(const muster_host *host, const char *context_json, void **session);
  /* Runs one case of the session's test. `case_json`: every parameter, validated and filled with defaults. */
  muster_status (*run)(void *session, const char *case_json);
  /* Ends the session; called once after each successful open(), also after a failed run(). */
  void (*close)(void *session);
} muster_plugin_ops;

/* The two symbols that a plugin library exports. */
MUSTER_EXPORT extern const muster_plugin_info muster_plugin;
MUSTER_EXPORT const muster_plugin_ops *muster_plugin_entry(uint32_t host_abi_minor);

#ifdef __cplusplus
}
#endif

#endif /* MUSTER_PLUGIN_H */
