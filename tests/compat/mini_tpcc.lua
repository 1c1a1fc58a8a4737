#!/usr/bin/env sysbench
-- A small TPC-C in the manner of the well-known one: common part, prepared in parallel, five transactions.
require("mini_tpcc_common")

function thread_init()
   drv = sysbench.sql.driver()
   con = drv:connect()
   con:query("SET AUTOCOMMIT=0")
end

function event()
   local choice = sysbench.rand.uniform(1, 23)
   if choice <= 10 then
      new_order()
   elseif choice <= 20 then
      payment()
   elseif choice <= 21 then
      order_status()
   elseif choice <= 22 then
      delivery()
   else
      stock_level()
   end
end

function sysbench.hooks.before_restart_event(err)
   con:query("ROLLBACK")
end

function thread_done()
   con:disconnect()
end
