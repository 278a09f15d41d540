-- The same plan, built with loops.
local sizes = { 1024, 2048 }
return plan{
  schema = 1,
  name = "node-acceptance",
  backend = "host",
  stage{
    name = "health", plugin = "env", test = "health",
    expect{ metric = "env.clock_source", one_of = { "tsc", "kvm-clock" } },
    expect{ metric = "env.in_container", equals = false },
  },
  stage{
    name = "gemm", plugin = "compute", test = "gemm",
    needs = { "health" },
    timeout = "5m",
    ["repeat"] = 3,
    params = { min_time = "500ms" },
    matrix = { dtype = { "bf16", "f32" }, size = sizes },
    expect{
      metric = "compute.gemm_throughput",
      where = { dtype = "bf16", size = 2048 },
      min = "650 TFLOP/s", cv_max = "2%",
      remedy = "Check clocks",
    },
    expect{ metric = "compute.gemm_wrong_elements", max = 0 },
    expect{ metric = "compute.gemm_time",
            predicate = function(m) -- it
              return m.cv < 0.05, "noisy"
            end },
  },
}
