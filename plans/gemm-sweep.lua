-- SPDX-License-Identifier: Apache-2.0
-- A plan in Lua: one stage for each shape, with limits that are computed. GEMM on this machine's CPU over sizes and types.
--   muster run plans/gemm-sweep.lua
local stages = {}

for _, size in ipairs({512, 1024, 2048}) do
  stages[#stages + 1] = stage{
    name = "gemm-" .. size,
    plugin = "compute",
    test = "gemm",
    scope = "device",
    timeout = "1m",
    params = { size = size, warmup = "500ms", min_time = "500ms", max_time = "1s" },
    matrix = { dtype = {"f32", "f64"} },
    expect = {
      expect{
        metric = "compute.gemm_throughput",
        -- Small products pay for their threads: a warning, no failure.
        predicate = function(m)
          return m.min >= 0.5 * m.median, "the slowest sample is far below the median"
        end,
        severity = "warn",
        source = "Muster: samples of a quiet machine lie close together",
        remedy = "Something else takes CPU time: see the busiest process in the telemetry",
      },
    },
  }
end

return plan{
  schema = 1,
  name = "gemm-sweep",
  description = "Matrix products over sizes and types on this machine's CPU",
  sku = "host",
  backend = "host",
  stage = stages,
}
