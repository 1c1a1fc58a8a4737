function init() print("init", sysbench.tid, sysbench.opt.threads) end
function done() print("done", sysbench.tid) end
function thread_init(tid) if tid == 0 then print("thread_init", tid) end end
function thread_done(tid) if tid == 0 then print("thread_done", tid) end end
ffi.cdef("int usleep(unsigned)")
function event() ffi.C.usleep(300000) end
local function show(name)
   return function(stat)
      local keys = {}
      for key in pairs(stat) do keys[#keys + 1] = key end
      table.sort(keys)
      print(name, sysbench.tid, table.concat(keys, " "))
   end
end
sysbench.hooks.report_cumulative = show("cumulative")
