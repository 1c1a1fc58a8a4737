ffi.cdef("bool sb_more_events(int); void sb_event_start(int); void sb_event_stop(int);")
function thread_run(tid)
   while ffi.C.sb_more_events(tid) do
      ffi.C.sb_event_start(tid)
      event(tid)
      ffi.C.sb_event_stop(tid)
   end
end
function event() end
