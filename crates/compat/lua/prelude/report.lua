-- Histograms and the reports that a script may choose.
local native = ...

local function rates(stat)
   local seconds = stat.time_interval
   return stat.events / seconds, stat.reads / seconds, stat.writes / seconds, stat.other / seconds
end

local function report_csv(stat)
   local tps, reads, writes, other = rates(stat)
   print(string.format("%.0f,%u,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f", stat.time_total,
      stat.threads_running, tps, reads + writes + other, reads, writes, other, stat.latency_pct * 1000,
      stat.errors / stat.time_interval, stat.reconnects / stat.time_interval))
end

local json_reports = 0

local function report_json(stat)
   local tps, reads, writes, other = rates(stat)
   native.print(json_reports == 0 and "[\n" or ",\n")
   json_reports = json_reports + 1
   native.print(string.format([[
  {
    "time": %4.0f,
    "threads": %u,
    "tps": %4.2f,
    "qps": {
      "total": %4.2f,
      "reads": %4.2f,
      "writes": %4.2f,
      "other": %4.2f
    },
    "latency": %4.2f,
    "errors": %4.2f,
    "reconnects": %4.2f
  }]], stat.time_total, stat.threads_running, tps, reads + writes + other, reads, writes, other,
      stat.latency_pct * 1000, stat.errors / stat.time_interval, stat.reconnects / stat.time_interval))
end

-- Called after the last intermediate report.
function native.finish_reports()
   if json_reports > 0 then native.print("\n]\n") end
end

local function report_default(stat)
   local tps, reads, writes, other = rates(stat)
   print(string.format(
      "[ %.0fs ] thds: %u tps: %4.2f qps: %4.2f (r/w/o: %4.2f/%4.2f/%4.2f) lat (ms,%u%%): %4.2f err/s %4.2f reconn/s: %4.2f",
      stat.time_total, stat.threads_running, tps, reads + writes + other, reads, writes, other,
      sysbench.opt.percentile, stat.latency_pct * 1000, stat.errors / stat.time_interval,
      stat.reconnects / stat.time_interval))
end

native.define(sysbench, {
   report_csv = report_csv, report_json = report_json, report_default = report_default,
   histogram = {new = function(size, min, max) return native.histogram(size, min, max) end},
})
