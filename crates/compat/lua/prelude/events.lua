-- The events of a thread.
local native = ...
local next_event, event_ended = native.next_event, native.event_ended

-- Where an error of an event came from.
local function trace(err)
   if type(err) ~= "string" then return err end
   return debug.traceback(err, 2)
end

-- An event that a statement's error ended begins again.
function native.run_events(tid)
   while next_event() do
      local ok, given = xpcall(event, trace, tid)
      while not ok do
         if type(given) ~= "table" or given.errcode ~= sysbench.error.RESTART_EVENT then error(given, 0) end
         if type(sysbench.hooks.before_restart_event) == "function" then
            sysbench.hooks.before_restart_event(given)
         end
         if native.is_over() then
            native.event_given_up()
            return
         end
         ok, given = xpcall(event, trace, tid)
      end
      if given ~= nil and given ~= false then
         native.event_given_up()
         return
      end
      event_ended()
   end
end
