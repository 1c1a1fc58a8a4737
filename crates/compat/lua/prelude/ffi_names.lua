-- The library ffi with those functions of sysbench and of the C library that scripts declare and call.
local native = ...

-- Where scripts may have the table of the library already, it stays that one.
local shim = native.is_lazy and package.loaded.ffi or {}
local real = native.is_lazy and native.open_ffi() or require("ffi")
local own = {
   SB_CNT_OTHER = 0, SB_CNT_READ = 1, SB_CNT_WRITE = 2, SB_CNT_TRX = 3, SB_CNT_ERROR = 4, SB_CNT_RECONNECT = 5,
   sb_counter_inc = function(tid, counter) native.count(tonumber(tid), tonumber(counter)) end,
   sb_counter_val = function(tid, counter) return native.count_of(tonumber(tid), tonumber(counter)) end,
   usleep = function(us) native.sleep(tonumber(us) / 1e6) return 0 end,
   sleep = function(seconds) native.sleep(tonumber(seconds)) return 0 end,
   poll = function(fds, count, timeout)
      if count ~= 0 then return real.C.poll(fds, count, timeout) end
      native.sleep(tonumber(timeout) / 1e3)
      return 0
   end,
   sb_more_events = native.next_event,
   sb_event_start = function() end,
   sb_event_stop = function() native.event_ended() end,
   sb_rand_default = sysbench.rand.default,
   sb_rand_uniform = sysbench.rand.uniform,
   sb_rand_gaussian = sysbench.rand.gaussian,
   sb_rand_special = sysbench.rand.special,
   sb_rand_pareto = sysbench.rand.pareto,
   sb_rand_unique = sysbench.rand.unique,
   sb_rand_uniform_double = sysbench.rand.uniform_double,
}
local all = setmetatable({}, {
   __index = function(_, name)
      local value = own[name]
      if value ~= nil then return value end
      return real.C[name]
   end,
   __newindex = function(_, name, value) real.C[name] = value end,
})
shim.C = all
ffi = setmetatable(shim, {__index = real})
package.loaded.ffi = shim
