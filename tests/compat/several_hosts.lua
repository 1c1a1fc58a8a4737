-- Connections to several servers in turn: who answers.
function thread_init()
   drv = sysbench.sql.driver()
   con = drv:connect()
   other = drv:connect()
   print("connected", tostring(con), drv:name())
end

function event()
   local here, there = con:query_row("SELECT @@port"), other:query_row("SELECT @@port")
   if here == nil or there == nil then error("no port") end
   con:query("DO 1")
end
