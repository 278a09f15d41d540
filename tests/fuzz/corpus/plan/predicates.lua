local function steady(m)
  -- stays inside of itself
  if m.n < 3 then return false, "few samples: " .. m.n end
  return m.cv < 0.02 and math.abs(m.max - m.min) < 1e9
end
return plan{
  schema = 1, name = "predicates", backend = "host",
  stage{
    name = "gemm", plugin = "compute", test = "gemm", params = { size = 64 },
    expect{ metric = "compute.gemm_time", predicate = steady },
    expect{ metric = "compute.gemm_algorithm",
            predicate = function(m) return m.text:find("^[%w_]+$") ~= nil end },
    expect = nil,
  },
}
