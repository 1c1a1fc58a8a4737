#!/usr/bin/env sysbench
-- Think times by usleep, errors counted by hand.
ffi = require("ffi")
ffi.cdef[[

void sb_counter_inc(int thread_id, int type);
int usleep(unsigned int microseconds);
]]

sysbench.cmdline.options = {
   think = {"Microseconds between transactions", 200},
   wrong = {"Every so many transactions one is counted as wrong", 5},
}

local done = 0

function thread_init()
   drv = sysbench.sql.driver()
   con = drv:connect()
end

function event()
   con:query("SELECT 1")
   done = done + 1
   if done % sysbench.opt.wrong == 0 then
      ffi.C.sb_counter_inc(sysbench.tid, ffi.C.SB_CNT_ERROR)
   end
   ffi.C.usleep(sysbench.opt.think)
end

function thread_done()
   con:disconnect()
end
