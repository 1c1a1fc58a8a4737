function thread_init() con = sysbench.sql.driver():connect() end
n = 0
function event()
   n = n + 1
   if n == 2 then con:query("selekt 1") end
   con:query("SELECT 1")
end
function sysbench.hooks.before_restart_event(e) print("restart", e.sql_errno, e.sql_state, e.errcode, e.query) end
