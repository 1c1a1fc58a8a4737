-- The API that scripts for sysbench 1.0 and 0.5 call, on top of the functions that the program gives (`native`).
local native = ...

sysbench = sysbench or {}
sysbench.tid = native.tid
sysbench.version = "1.0.20"
sysbench.version_string = "sysbench 1.0.20"
sysbench.hooks = {}
sysbench.error = {NONE = 0, RESTART_EVENT = 1}

io.stdout:setvbuf("no")

function print(...)
   local words = {}
   for i = 1, select("#", ...) do
      words[i] = tostring((select(i, ...)))
   end
   native.print(table.concat(words, "\t") .. "\n")
end

-- Options and commands -----------------------------------------------------------------------------------------------

sysbench.cmdline = {
   ARG_NULL = 0, ARG_BOOL = 1, ARG_INT = 2, ARG_SIZE = 3, ARG_DOUBLE = 4, ARG_STRING = 5, ARG_LIST = 6, ARG_FILE = 7,
   ARG_MAX = 8, PARALLEL_COMMAND = true,
   argv = native.argv, command = native.command, script_path = native.script_path,
}

local function kind_of(option)
   local default, kind = option[2], option[3]
   if type(kind) == "number" then return kind end
   if type(default) == "boolean" then return sysbench.cmdline.ARG_BOOL end
   if type(default) == "number" then
      return default % 1 == 0 and sysbench.cmdline.ARG_INT or sysbench.cmdline.ARG_DOUBLE
   end
   return sysbench.cmdline.ARG_STRING
end

-- The options that the script declares, by name: lists of name, kind, default as text or nil, help.
function native.declared_options()
   if type(sysbench.cmdline.options) ~= "table" then return nil end
   local list = {}
   for name, option in pairs(sysbench.cmdline.options) do
      local default = option[2]
      if type(default) == "boolean" then
         default = default and "on" or "off"
      elseif type(default) == "table" then
         default = table.concat(default, ",")
      elseif default ~= nil then
         default = tostring(default)
      end
      list[#list + 1] = {tostring(name), kind_of(option), default, option[1] or ""}
   end
   table.sort(list, function(a, b) return a[1] < b[1] end)
   return list
end

function sysbench.cmdline.read_cmdline_options() return true end

function sysbench.cmdline.print_test_options()
   native.print_test_options()
end

local function command_named(name)
   local commands = sysbench.cmdline.commands
   local command = type(commands) == "table" and commands[name] or nil
   if type(command) == "function" then return {command} end
   return command
end

function sysbench.cmdline.command_defined(name)
   return command_named(name) ~= nil
end

function sysbench.cmdline.command_parallel(name)
   local command = command_named(name)
   return command ~= nil and command[2] == true
end

function sysbench.cmdline.call_command(name)
   local command = command_named(name)
   if command == nil then return false end
   return command[1]() ~= false
end

-- Random numbers -----------------------------------------------------------------------------------------------------

sysbench.rand = {
   default = native.rand_default,
   uniform = native.rand_uniform,
   gaussian = native.rand_gaussian,
   special = native.rand_special,
   pareto = native.rand_pareto,
   zipfian = native.rand_zipfian,
   unique = native.rand_unique,
   uniform_uint64 = native.rand_uint64,
   uniform_double = native.rand_double,
   string = native.rand_string,
   varstring = native.rand_varstring,
}

-- Databases ----------------------------------------------------------------------------------------------------------

sysbench.sql = {
   type = {
      NONE = 0, TINYINT = 1, SMALLINT = 2, INT = 3, BIGINT = 4, FLOAT = 5, DOUBLE = 6, TIME = 7, DATE = 8, DATETIME = 9,
      TIMESTAMP = 10, CHAR = 11, VARCHAR = 12,
   },
   error = {NONE = 0, IGNORABLE = 1, FATAL = 2},
}

local driver, connection, statement, param, result = {}, {}, {}, {}, {}
driver.__index, connection.__index, statement.__index, param.__index = driver, connection, statement, param
driver.__tostring = function() return "<sql_driver>" end
connection.__tostring = function() return "<sql_connection>" end
statement.__tostring = function() return "<sql_statement>" end
param.__tostring = function() return "<sql_param>" end
result.__index = result
result.__tostring = function() return "<sql_result>" end

function sysbench.sql.driver(name)
   local found = native.driver(name)
   if not found then error("failed to initialize the DB driver", 2) end
   return setmetatable({_name = found}, driver)
end

function driver:name() return self._name end

function driver:connect()
   local native_connection = native.connect()
   if native_connection == nil then error("connection creation failed", 2) end
   return setmetatable({native = native_connection, driver = self, error = 0, sql_errno = 0}, connection)
end

function connection:disconnect()
   if self.native == nil then error("attempt to disconnect a closed connection", 2) end
   self.native:close()
   self.native = nil
   return true
end

function connection:reconnect()
   self.error = 0
   if not self.native:reconnect() then error("reconnect failed", 2) end
   return true
end

-- Takes the answer of a statement: nil after an error, else its result or nil.
local function take(con, stmt, code, a, b, c)
   if code == 0 then
      con.error, con.sql_errno, con.sql_state, con.sql_errmsg = 0, 0, nil, nil
      return setmetatable({nfields = a, nrows = b, rows = c, counter = a > 0 and 1 or 2, statement = stmt}, result)
   end
   con.error, con.sql_errno, con.sql_state, con.sql_errmsg = code, a, b, c
   return nil
end

function connection:check_error(rs, query)
   if rs ~= nil or self.error == 0 then return rs end
   local err = {
      connection = self, query = query, sql_errno = self.sql_errno, sql_state = self.sql_state,
      sql_errmsg = self.sql_errmsg,
   }
   local ignorable = self.error == sysbench.sql.error.IGNORABLE
   if not ignorable and type(sysbench.hooks.sql_error_ignorable) == "function" then
      ignorable = sysbench.hooks.sql_error_ignorable(err)
      if ignorable then native.count(sysbench.tid, 4) end
   end
   if ignorable then
      err.errcode = sysbench.error.RESTART_EVENT
      error(err, 3)
   end
   error(string.format("SQL error, errno = %d, state = '%s': %s", self.sql_errno or 0, self.sql_state or "",
      self.sql_errmsg or ""), 3)
end

function connection:query(sql)
   if self.native == nil then error("attempt to use a closed connection", 2) end
   local rs = take(self, nil, self.native:query(sql))
   -- No tail call: errors name the line that is three levels up.
   rs = self:check_error(rs, sql)
   return rs
end

function connection:query_row(sql)
   if self.native == nil then error("attempt to use a closed connection", 2) end
   local rs = self:check_error(take(self, nil, self.native:query(sql)), sql)
   if rs == nil or rs.nrows == 0 then return nil end
   return unpack(rs:fetch_row(), 1, rs.nfields)
end

function connection:bulk_insert_init(sql)
   self.bulk = {head = sql, parts = {}, bytes = #sql}
   return true
end

local function flush(con)
   local bulk = con.bulk
   if bulk == nil or #bulk.parts == 0 then return end
   local sql = bulk.head .. " " .. table.concat(bulk.parts, ",")
   bulk.parts, bulk.bytes = {}, #bulk.head
   con:check_error(take(con, nil, con.native:query(sql)), sql)
end

local BULK_BYTES = 512 * 1024

function connection:bulk_insert_next(values)
   local bulk = self.bulk
   if bulk == nil then error("bulk_insert_next() before bulk_insert_init()", 2) end
   if bulk.bytes + #values + 1 > BULK_BYTES then flush(self) end
   bulk.parts[#bulk.parts + 1] = values
   bulk.bytes = bulk.bytes + #values + 1
   return true
end

function connection:bulk_insert_done()
   flush(self)
   self.bulk = nil
   return true
end

function connection:prepare(sql)
   local prepared, errno, state, message = self.native:prepare(sql)
   if prepared == nil then
      self.error, self.sql_errno, self.sql_state, self.sql_errmsg = 2, errno, state, message
      error("SQL API error", 2)
   end
   return setmetatable({native = prepared, connection = self, params = {}, sql = sql}, statement)
end

function statement:bind_create(kind, max_len)
   return setmetatable({kind = kind, max_len = max_len or 0}, param)
end

function statement:bind_param(...)
   self.params = {...}
   return true
end

function statement:execute()
   local params, values = self.params, {}
   for i = 1, #params do values[i] = params[i].value end
   local con = self.connection
   local rs = take(con, self, con.native:execute(self.native, #params, values))
   rs = con:check_error(rs, "<prepared statement>")
   return rs
end

function statement:close()
   if self.native ~= nil then self.connection.native:close_statement(self.native) end
   self.native = nil
   return true
end

function param:set(value)
   if value == nil then
      self.value = nil
   elseif self.kind <= 4 then
      self.value = native.int(tonumber(value) or 0)
   elseif self.kind <= 6 then
      self.value = native.double(tonumber(value) or 0)
   else
      self.value = tostring(value)
   end
   return true
end

function param:set_rand_str(format)
   self.value = native.rand_string(format)
   return true
end

function result:fetch_row()
   if self.rows == nil then return nil end
   return self.rows:fetch_row()
end

function result:free()
   self.rows = nil
   return true
end

-- Histograms and reports -----------------------------------------------------------------------------------------------

sysbench.histogram = {
   new = function(size, min, max)
      return native.histogram(size, min, max)
   end,
}

local function rates(stat)
   local seconds = stat.time_interval
   return stat.events / seconds, stat.reads / seconds, stat.writes / seconds, stat.other / seconds
end

function sysbench.report_csv(stat)
   local tps, reads, writes, other = rates(stat)
   print(string.format("%.0f,%u,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f", stat.time_total,
      stat.threads_running, tps, reads + writes + other, reads, writes, other, stat.latency_pct * 1000,
      stat.errors / stat.time_interval, stat.reconnects / stat.time_interval))
end

local json_reports = 0

function sysbench.report_json(stat)
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

function sysbench.report_default(stat)
   local tps, reads, writes, other = rates(stat)
   print(string.format(
      "[ %.0fs ] thds: %u tps: %4.2f qps: %4.2f (r/w/o: %4.2f/%4.2f/%4.2f) lat (ms,%u%%): %4.2f err/s %4.2f reconn/s: %4.2f",
      stat.time_total, stat.threads_running, tps, reads + writes + other, reads, writes, other,
      sysbench.opt.percentile, stat.latency_pct * 1000, stat.errors / stat.time_interval,
      stat.reconnects / stat.time_interval))
end

-- One event of a thread; true when the thread is to stop. An event that a statement's error ended begins again.
function native.run_event(tid)
   while true do
      local ok, answer = pcall(event, tid)
      if ok then return answer ~= nil and answer ~= false end
      if type(answer) ~= "table" or answer.errcode ~= sysbench.error.RESTART_EVENT then error(answer, 0) end
      if type(sysbench.hooks.before_restart_event) == "function" then
         sysbench.hooks.before_restart_event(answer)
      end
      if native.is_over() then return true end
   end
end

-- FFI ------------------------------------------------------------------------------------------------------------------

local found, real = pcall(require, "ffi")
if found then
   local own = {
      SB_CNT_OTHER = 0, SB_CNT_READ = 1, SB_CNT_WRITE = 2, SB_CNT_TRX = 3, SB_CNT_ERROR = 4, SB_CNT_RECONNECT = 5,
      sb_counter_inc = function(tid, counter) native.count(tonumber(tid), tonumber(counter)) end,
      sb_counter_val = function(tid, counter) return native.count_of(tonumber(tid), tonumber(counter)) end,
      usleep = function(us) native.sleep(tonumber(us) / 1e6) return 0 end,
      sleep = function(seconds) native.sleep(tonumber(seconds)) return 0 end,
      sb_more_events = function() return native.more_events() end,
      sb_event_start = function() native.event_start() end,
      sb_event_stop = function() native.event_stop() end,
      sb_rand_default = native.rand_default,
      sb_rand_uniform = native.rand_uniform,
      sb_rand_gaussian = native.rand_gaussian,
      sb_rand_special = native.rand_special,
      sb_rand_pareto = native.rand_pareto,
      sb_rand_unique = native.rand_unique,
      sb_rand_uniform_double = native.rand_double,
   }
   local library = setmetatable({}, {
      __index = function(_, name)
         local value = own[name]
         if value ~= nil then return value end
         return real.C[name]
      end,
      __newindex = function(_, name, value) real.C[name] = value end,
   })
   ffi = setmetatable({C = library}, {__index = real})
   package.loaded.ffi = ffi
end

-- The API of 0.5 ---------------------------------------------------------------------------------------------------------

thread_id = native.tid
test = native.script_path
mysql_table_engine = "innodb"
myisam_max_rows = 1000000
DB_ERROR_NONE, DB_ERROR_RESTART_TRANSACTION, DB_ERROR_FAILED = 0, 1, 2

sb_rnd = function() return native.rand_uniform(0, 2147483647) end
sb_rand = native.rand_default
sb_rand_uniform = native.rand_uniform
sb_rand_gaussian = native.rand_gaussian
sb_rand_special = native.rand_special
sb_rand_uniq = function(a, b) return native.rand_unique() % (b - a + 1) + a end
sb_rand_str = native.rand_string

local current

function db_connect()
   local found_driver = sysbench.sql.driver()
   db_driver = found_driver:name()
   current = found_driver:connect()
   return current
end

local function at_hand()
   if current == nil then db_connect() end
   return current
end

function db_disconnect()
   if current ~= nil then current:disconnect() end
   current = nil
end

function db_query(sql)
   local con = at_hand()
   local rs = take(con, nil, con.native:query(sql))
   if rs == nil and con.error == sysbench.sql.error.FATAL then error("db_query() failed", 2) end
   rs = con:check_error(rs, sql)
   return rs
end

function db_bulk_insert_init(sql) return at_hand():bulk_insert_init(sql) end

function db_bulk_insert_next(values) return at_hand():bulk_insert_next(values) end

function db_bulk_insert_done() return at_hand():bulk_insert_done() end

function db_prepare(sql) return at_hand():prepare(sql) end

function db_bind_param(stmt, values)
   stmt.bound = values
end

function db_bind_result() end

function db_execute(stmt)
   if stmt.bound ~= nil then
      local params = {}
      for i, value in ipairs(stmt.bound) do
         local kind = type(value) == "number" and sysbench.sql.type.BIGINT or sysbench.sql.type.VARCHAR
         params[i] = stmt:bind_create(kind, 255)
         params[i]:set(value)
      end
      stmt:bind_param(unpack(params))
   end
   return stmt:execute()
end

function db_store_results() end

function db_free_results(rs)
   if type(rs) == "table" and rs.free then rs:free() end
end

function db_close(stmt) return stmt:close() end

sysbench.db = {
   connect = db_connect, disconnect = db_disconnect, query = db_query, bulk_insert_init = db_bulk_insert_init,
   bulk_insert_next = db_bulk_insert_next, bulk_insert_done = db_bulk_insert_done, prepare = db_prepare,
   bind_param = db_bind_param, bind_result = db_bind_result, execute = db_execute,
   store_results = db_store_results, free_results = db_free_results, close = db_close,
}
