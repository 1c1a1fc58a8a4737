-- The number of rows in several random ranges of the indexed column.
require("oltp_common")

sysbench.cmdline.options.number_of_ranges = {"Ranges of a statement", 10}
sysbench.cmdline.options.delta = {"Keys of a range", 5}

function thread_init()
   drv = sysbench.sql.driver()
   con = drv:connect()
   local marks = {}
   for i = 1, sysbench.opt.number_of_ranges do marks[i] = "k BETWEEN ? AND ?" end
   statement = con:prepare("SELECT count(k) FROM sbtest1 WHERE " .. table.concat(marks, " OR "))
   ends = {}
   for i = 1, sysbench.opt.number_of_ranges * 2 do ends[i] = statement:bind_create(sysbench.sql.type.INT) end
   statement:bind_param(unpack(ends))
end

function event()
   for i = 1, #ends, 2 do
      local from = sysbench.rand.default(1, sysbench.opt.table_size)
      ends[i]:set(from)
      ends[i + 1]:set(from + sysbench.opt.delta)
   end
   statement:execute()
end

function thread_done()
   statement:close()
   con:disconnect()
end
