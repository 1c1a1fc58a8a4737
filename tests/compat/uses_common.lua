require("oltp_common")
sysbench.cmdline.options.extra = {"an option more", 7}
function prepare_statements() prepare_point_selects() end
function event()
   execute_point_selects()
   con:query("SELECT '" .. get_c_value():sub(1, 5):gsub("%d", "5") .. "'")
end
