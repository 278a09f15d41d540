local limit = 3
local t = {}
t.t = t
return {
  schema = "1", name = 7, stage = {
    stage{ name = "a", plugin = "compute", test = "gemm", needs = { "a", nil, "b" }, params = { [2] = 3, x = 0/0 } },
    { expect = { expect{ predicate = function(m) return limit end }, 3, { min = 1/0 } } },
    t,
  },
}
