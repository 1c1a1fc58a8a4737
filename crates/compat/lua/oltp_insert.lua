-- One row inserted by a text.
require("oltp_common")

function prepare_statements() end

function event()
   local name = "sbtest" .. sysbench.rand.uniform(1, sysbench.opt.tables)
   local k, c, pad = sysbench.rand.default(1, sysbench.opt.table_size), get_c_value(), get_pad_value()
   if sysbench.opt.auto_inc then
      con:query(string.format("INSERT INTO %s (k, c, pad) VALUES (%d, '%s', '%s')", name, k, c, pad))
   else
      -- Numbers of the whole range of INTEGER; few meet a row that is there.
      local id = sysbench.rand.unique() - 2147483648
      con:query(string.format("INSERT INTO %s (id, k, c, pad) VALUES (%d, %d, '%s', '%s')", name, id, k, c, pad))
   end
end
