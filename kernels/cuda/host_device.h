// SPDX-License-Identifier: Apache-2.0
// Marks functions that run on the GPU, and are compiled for the CPU too so that tests can try them anywhere.
#pragma once

#ifdef __CUDACC__
#define MUSTER_HD __host__ __device__
#else
#define MUSTER_HD
#endif
