-- Reports of its own, as CSV by the second and as JSON at the end.
sysbench.cmdline.options = {
   header = {"Print the names of the columns", true},
}

function thread_init()
   con = sysbench.sql.driver():connect()
end

function event()
   con:query("SELECT 1")
   con:query("DO 1")
end

if sysbench.cmdline.command == "run" then
   function sysbench.hooks.report_intermediate(stat)
      local seconds = stat.time_interval
      if sysbench.opt.header and not printed then
         print("time,threads,tps,qps,reads,writes,other,latency,errors,reconnects")
         printed = true
      end
      print(string.format("%.0f,%u,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f", stat.time_total,
         stat.threads_running, stat.events / seconds, (stat.reads + stat.writes + stat.other) / seconds,
         stat.reads / seconds, stat.writes / seconds, stat.other / seconds, stat.latency_pct * 1000,
         stat.errors / seconds, stat.reconnects / seconds))
   end

   function sysbench.hooks.report_cumulative(stat)
      print(string.format('{"time": %.3f, "events": %u, "queries": %u, "latency": {"min": %.3f, "avg": %.3f, "max": %.3f, "sum": %.3f}}',
         stat.time_total, stat.events, stat.reads + stat.writes + stat.other, stat.latency_min * 1000,
         stat.latency_avg * 1000, stat.latency_max * 1000, stat.latency_sum * 1000))
   end
end
