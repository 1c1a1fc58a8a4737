-- thread_run: the loop over events is the script's own.
local ffi = require("ffi")
ffi.cdef[[
void sb_event_start(int thread_id);
void sb_event_stop(int thread_id);
bool sb_more_events(int thread_id);
]]

function thread_init()
   con = sysbench.sql.driver():connect()
end

-- sysbench asks for it, whoever calls it.
function event() end

function thread_run(thread_id)
   local rounds = 0
   while ffi.C.sb_more_events(thread_id) do
      ffi.C.sb_event_start(thread_id)
      con:query("SELECT " .. thread_id)
      con:query("DO 0")
      ffi.C.sb_event_stop(thread_id)
      rounds = rounds + 1
      if rounds >= 20 then break end
   end
end

function thread_done()
   con:disconnect()
end
