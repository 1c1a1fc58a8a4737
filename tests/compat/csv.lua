function thread_init() con = sysbench.sql.driver():connect() end
function event() con:query("SELECT 1") con:query("SELECT SLEEP(0.3)") end
if sysbench.cmdline.script_path:match("csv") then sysbench.hooks.report_intermediate = sysbench.report_csv
else sysbench.hooks.report_intermediate = sysbench.report_json end
