-- Options, tables and statements that the oltp_* scripts share. Names of options, functions and variables are those that
-- scripts for sysbench 1.0 overwrite and call.

if sysbench.cmdline.command == nil then
   error("Command is required. Supported commands: prepare, prewarm, run, cleanup, help")
end

sysbench.cmdline.options = {
   auto_inc = {"Let the server number the rows; off: the client sends ids", true},
   create_secondary = {"Create an index on k after the rows are in", true},
   delete_inserts = {"DELETE and INSERT pairs of a transaction", 1},
   distinct_ranges = {"SELECT DISTINCT statements of a transaction", 1},
   index_updates = {"Updates of the indexed column in a transaction", 1},
   mysql_storage_engine = {"Storage engine of the tables", "innodb"},
   non_index_updates = {"Updates of a column without index in a transaction", 1},
   order_ranges = {"SELECT ... ORDER BY statements of a transaction", 1},
   pgsql_variant = {"Accepted and not used", nil, sysbench.cmdline.ARG_STRING},
   point_selects = {"SELECTs of one row by its key in a transaction", 10},
   range_selects = {"Send the SELECTs of ranges", true},
   range_size = {"Rows of a range", 100},
   secondary = {"Use a secondary index where the primary key would stand", false},
   simple_ranges = {"Plain SELECTs of a range in a transaction", 1},
   skip_trx = {"Send statements without BEGIN and COMMIT", false},
   sum_ranges = {"SELECT SUM() statements of a transaction", 1},
   table_size = {"Rows of a table", 10000},
   tables = {"Tables", 1},
}

local digits = "###########"
local c_value_template = string.rep(digits, 10, "-")
local pad_value_template = string.rep(digits, 5, "-")
-- string.rep takes no separator in every Lua 5.1.
if not c_value_template:find("-", 1, true) then
   local function groups(count)
      local parts = {}
      for i = 1, count do parts[i] = digits end
      return table.concat(parts, "-")
   end
   c_value_template, pad_value_template = groups(10), groups(5)
end

function get_c_value() return sysbench.rand.string(c_value_template) end

function get_pad_value() return sysbench.rand.string(pad_value_template) end

-- Tables ----------------------------------------------------------------------------------------------------------------

function create_table(drv, con, table_num)
   local id = sysbench.opt.secondary and "KEY xid" or "PRIMARY KEY"
   local number = sysbench.opt.auto_inc and "INTEGER NOT NULL AUTO_INCREMENT" or "INTEGER NOT NULL"
   print(string.format("Creating table 'sbtest%d'...", table_num))
   con:query(string.format([[
CREATE TABLE sbtest%d(
  id %s,
  k INTEGER DEFAULT '0' NOT NULL,
  c CHAR(120) DEFAULT '' NOT NULL,
  pad CHAR(60) DEFAULT '' NOT NULL,
  %s (id)
) /*! ENGINE = %s */ %s]], table_num, number, id, sysbench.opt.mysql_storage_engine,
      sysbench.opt.table_options or ""))
   local rows = sysbench.opt.table_size
   if rows > 0 then print(string.format("Inserting %d records into 'sbtest%d'", rows, table_num)) end
   local with_id = not sysbench.opt.auto_inc
   con:bulk_insert_init(string.format("INSERT INTO sbtest%d(%sk, c, pad) VALUES", table_num, with_id and "id, " or ""))
   for row = 1, rows do
      local values = string.format("%d, '%s', '%s')", sysbench.rand.default(1, rows), get_c_value(), get_pad_value())
      con:bulk_insert_next((with_id and "(" .. row .. ", " or "(") .. values)
   end
   con:bulk_insert_done()
   if sysbench.opt.create_secondary then
      print(string.format("Creating a secondary index on 'sbtest%d'...", table_num))
      con:query(string.format("CREATE INDEX k_%d ON sbtest%d(k)", table_num, table_num))
   end
end

-- Calls work(drv, con, table) for the tables of this thread.
local function for_own_tables(work)
   local drv = sysbench.sql.driver()
   local con = drv:connect()
   for i = sysbench.tid % sysbench.opt.threads + 1, sysbench.opt.tables, sysbench.opt.threads do
      work(drv, con, i)
   end
end

function cmd_prepare() for_own_tables(create_table) end

function cmd_prewarm()
   for_own_tables(function(_, con, i)
      print("Prewarming table sbtest" .. i)
      con:query("ANALYZE TABLE sbtest" .. i)
      con:query(string.format("SELECT AVG(id) FROM (SELECT * FROM sbtest%d FORCE KEY (PRIMARY) LIMIT %d) t", i,
         sysbench.opt.table_size))
      con:query(string.format("SELECT COUNT(*) FROM (SELECT * FROM sbtest%d WHERE k LIKE '%%0%%' LIMIT %d) t", i,
         sysbench.opt.table_size))
   end)
end

sysbench.cmdline.commands = {
   prepare = {function() cmd_prepare() end, sysbench.cmdline.PARALLEL_COMMAND},
   prewarm = {function() cmd_prewarm() end, sysbench.cmdline.PARALLEL_COMMAND},
}

function cleanup()
   local con = sysbench.sql.driver():connect()
   for i = 1, sysbench.opt.tables do
      print(string.format("Dropping table 'sbtest%d'...", i))
      con:query("DROP TABLE IF EXISTS sbtest" .. i)
   end
end

-- Statements --------------------------------------------------------------------------------------------------------------

local t = sysbench.sql.type

-- For each kind: the text with %u for the table, then the types of its parameters; a text has a type and a length.
local stmt_defs = {
   point_selects = {"SELECT c FROM sbtest%u WHERE id=?", t.INT},
   simple_ranges = {"SELECT c FROM sbtest%u WHERE id BETWEEN ? AND ?", t.INT, t.INT},
   sum_ranges = {"SELECT SUM(k) FROM sbtest%u WHERE id BETWEEN ? AND ?", t.INT, t.INT},
   order_ranges = {"SELECT c FROM sbtest%u WHERE id BETWEEN ? AND ? ORDER BY c", t.INT, t.INT},
   distinct_ranges = {"SELECT DISTINCT c FROM sbtest%u WHERE id BETWEEN ? AND ? ORDER BY c", t.INT, t.INT},
   index_updates = {"UPDATE sbtest%u SET k=k+1 WHERE id=?", t.INT},
   non_index_updates = {"UPDATE sbtest%u SET c=? WHERE id=?", {t.CHAR, 120}, t.INT},
   deletes = {"DELETE FROM sbtest%u WHERE id=?", t.INT},
   inserts = {"INSERT INTO sbtest%u (id, k, c, pad) VALUES (?, ?, ?, ?)", t.INT, t.INT, {t.CHAR, 120}, {t.CHAR, 60}},
}

function prepare_begin() stmt.begin = con:prepare("BEGIN") end

function prepare_commit() stmt.commit = con:prepare("COMMIT") end

function prepare_for_each_table(key)
   local definition = stmt_defs[key]
   for i = 1, sysbench.opt.tables do
      local prepared = con:prepare(string.format(definition[1], i))
      local params = {}
      for p = 2, #definition do
         local kind = definition[p]
         if type(kind) == "table" then
            params[p - 1] = prepared:bind_create(kind[1], kind[2])
         else
            params[p - 1] = prepared:bind_create(kind)
         end
      end
      if #params > 0 then prepared:bind_param(unpack(params)) end
      stmt[i] = stmt[i] or {}
      param[i] = param[i] or {}
      stmt[i][key], param[i][key] = prepared, params
   end
end

function prepare_point_selects() prepare_for_each_table("point_selects") end

function prepare_simple_ranges() prepare_for_each_table("simple_ranges") end

function prepare_sum_ranges() prepare_for_each_table("sum_ranges") end

function prepare_order_ranges() prepare_for_each_table("order_ranges") end

function prepare_distinct_ranges() prepare_for_each_table("distinct_ranges") end

function prepare_index_updates() prepare_for_each_table("index_updates") end

function prepare_non_index_updates() prepare_for_each_table("non_index_updates") end

function prepare_delete_inserts()
   prepare_for_each_table("deletes")
   prepare_for_each_table("inserts")
end

function init()
   assert(event ~= nil, "oltp_common defines no event: run a script that requires it")
end

function thread_init()
   drv = sysbench.sql.driver()
   con = drv:connect()
   stmt, param = {}, {}
   for i = 1, sysbench.opt.tables do
      stmt[i], param[i] = {}, {}
   end
   prepare_statements()
end

function close_statements()
   for i = 1, sysbench.opt.tables do
      for _, prepared in pairs(stmt[i]) do prepared:close() end
   end
   for _, key in ipairs({"begin", "commit"}) do
      if stmt[key] ~= nil then stmt[key]:close() end
   end
end

function thread_done()
   close_statements()
   con:disconnect()
end

local function any_table() return sysbench.rand.uniform(1, sysbench.opt.tables) end

local function any_id() return sysbench.rand.default(1, sysbench.opt.table_size) end

function begin() stmt.begin:execute() end

function commit() stmt.commit:execute() end

function execute_point_selects()
   local i = any_table()
   for _ = 1, sysbench.opt.point_selects do
      param[i].point_selects[1]:set(any_id())
      stmt[i].point_selects:execute()
   end
end

local function execute_range(key)
   local i = any_table()
   for _ = 1, sysbench.opt[key] do
      local id = any_id()
      param[i][key][1]:set(id)
      param[i][key][2]:set(id + sysbench.opt.range_size - 1)
      stmt[i][key]:execute()
   end
end

function execute_simple_ranges() execute_range("simple_ranges") end

function execute_sum_ranges() execute_range("sum_ranges") end

function execute_order_ranges() execute_range("order_ranges") end

function execute_distinct_ranges() execute_range("distinct_ranges") end

function execute_index_updates()
   local i = any_table()
   for _ = 1, sysbench.opt.index_updates do
      param[i].index_updates[1]:set(any_id())
      stmt[i].index_updates:execute()
   end
end

function execute_non_index_updates()
   local i = any_table()
   for _ = 1, sysbench.opt.non_index_updates do
      param[i].non_index_updates[1]:set_rand_str(c_value_template)
      param[i].non_index_updates[2]:set(any_id())
      stmt[i].non_index_updates:execute()
   end
end

function execute_delete_inserts()
   local i = any_table()
   for _ = 1, sysbench.opt.delete_inserts do
      local id = any_id()
      local values = param[i].inserts
      param[i].deletes[1]:set(id)
      values[1]:set(id)
      values[2]:set(any_id())
      values[3]:set_rand_str(c_value_template)
      values[4]:set_rand_str(pad_value_template)
      stmt[i].deletes:execute()
      stmt[i].inserts:execute()
   end
end

-- After an error that restarts the event, what the transaction has done so far is given up.
function sysbench.hooks.before_restart_event(err)
   if not sysbench.opt.skip_trx and err.sql_errno ~= 1213 then con:query("ROLLBACK") end
   if err.sql_errno == 2013 or err.sql_errno == 2055 or err.sql_errno == 2006 or err.sql_errno == 2011 then
      close_statements()
      prepare_statements()
   end
end
