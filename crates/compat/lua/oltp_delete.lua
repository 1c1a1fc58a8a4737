-- One row deleted by its key.
require("oltp_common")

function prepare_statements() prepare_for_each_table("deletes") end

function event()
   local i = sysbench.rand.uniform(1, sysbench.opt.tables)
   param[i].deletes[1]:set(sysbench.rand.default(1, sysbench.opt.table_size))
   stmt[i].deletes:execute()
end
