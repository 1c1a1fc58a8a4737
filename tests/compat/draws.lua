-- Numbers of every distribution, counted by eighths of the range, and by the hottest rows.
local kinds = {"default", "uniform", "gaussian", "special", "pareto"}

sysbench.cmdline.options = {
   draws = {"Numbers of each distribution", 20000},
}

function event() end

function init()
   for _, kind in ipairs(kinds) do
      local counts = {}
      for i = 1, 16 do counts[i] = 0 end
      for i = 1, sysbench.opt.draws do
         local number = sysbench.rand[kind](1, 1600)
         local place = math.floor((number - 1) / 100) + 1
         counts[place] = counts[place] + 1
      end
      print("counts " .. kind .. " " .. table.concat(counts, " "))
   end
end
