-- Random numbers and texts.
local native = ...
local draw, fill = native.draw, native.fill

sysbench.rand = {
   default = function(a, b) return draw(0, a, b) end,
   uniform = function(a, b) return draw(1, a, b) end,
   gaussian = function(a, b) return draw(2, a, b) end,
   special = function(a, b) return draw(3, a, b) end,
   pareto = function(a, b) return draw(4, a, b) end,
   zipfian = function(a, b) return draw(5, a, b) end,
   unique = native.unique,
   uniform_uint64 = native.bits,
   uniform_double = native.fraction,
   string = fill,
   varstring = function(min, max) return fill(string.rep("@", draw(1, min, max))) end,
}
