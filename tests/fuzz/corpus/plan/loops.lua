local stages = { stage{ name = "env", plugin = "env", test = "health" } }
for _, dtype in ipairs{ "bf16", "f32" } do
  for exponent = 10, 12 do
    stages[#stages + 1] = stage{
      name = string.format("gemm-%s-%d", dtype, 1 << exponent), plugin = "compute", test = "gemm",
      needs = { "env" }, timeout = 60 * 2, ["repeat"] = 3,
      params = { dtype = dtype, size = 1 << exponent },
      expect{ metric = "compute.gemm_throughput", of_peak = 0.7, cv_max = "2%" },
    }
  end
end
table.sort(stages, function(a, b) return a.name < b.name end)
return plan{ schema = 1, name = "sweep", backend = "host", stage = stages }
