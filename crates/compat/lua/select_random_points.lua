-- Rows by several random keys of the indexed column.
require("oltp_common")

sysbench.cmdline.options.random_points = {"Keys of a statement", 10}

function thread_init()
   drv = sysbench.sql.driver()
   con = drv:connect()
   local marks = {}
   for i = 1, sysbench.opt.random_points do marks[i] = "?" end
   statement = con:prepare("SELECT id, k, c, pad FROM sbtest1 WHERE k IN (" .. table.concat(marks, ", ") .. ")")
   keys = {}
   for i = 1, sysbench.opt.random_points do keys[i] = statement:bind_create(sysbench.sql.type.INT) end
   statement:bind_param(unpack(keys))
end

function event()
   for i = 1, #keys do keys[i]:set(sysbench.rand.default(1, sysbench.opt.table_size)) end
   statement:execute()
end

function thread_done()
   statement:close()
   con:disconnect()
end
