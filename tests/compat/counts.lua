ffi = require("ffi")
ffi.cdef([[
int usleep(unsigned);
void sb_counter_inc(int, int);
]])
function event(tid)
   ffi.C.usleep(10)
   ffi.C.sb_counter_inc(tid, ffi.C.SB_CNT_ERROR)
end
sysbench.hooks.report_cumulative = function(stat) print("errors", stat.errors, "events", stat.events) end
