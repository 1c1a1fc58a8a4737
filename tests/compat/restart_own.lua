-- Errors that are ignored by a hook, events that start anew, and an error at last.
sysbench.cmdline.options = {
   attempts = {"Events before the script gives up; 0 never does", 0},
}

local tried, restarted = 0, 0

function thread_init()
   con = sysbench.sql.driver():connect()
   con:query("CREATE TEMPORARY TABLE once (id INT PRIMARY KEY)")
end

function event()
   tried = tried + 1
   if sysbench.opt.attempts > 0 and tried > sysbench.opt.attempts then
      error("gave up after " .. restarted .. " restarts")
   end
   con:query("INSERT INTO once VALUES (" .. math.floor(tried / 2) .. ")")
end

function sysbench.hooks.sql_error_ignorable(err)
   -- 1062: the key is there already.
   return err.sql_errno == 1062
end

function sysbench.hooks.before_restart_event(err)
   restarted = restarted + 1
   print("restart " .. restarted .. ": " .. err.sql_errno .. " " .. err.sql_state .. " " .. err.sql_errmsg)
end
