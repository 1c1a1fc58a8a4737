-- The API that scripts for sysbench 1.0 and 0.5 call, on top of the functions that the program gives (`native`).
local native = ...

sysbench = sysbench or {}
sysbench.tid = native.tid
sysbench.version = "1.0.20"
sysbench.version_string = "sysbench 1.0.20"
sysbench.hooks = {}
sysbench.error = {NONE = 0, RESTART_EVENT = 1}

-- What is called often goes through ffi, so that it is compiled with the script; api.rs has the functions.
local found, library = pcall(require, "ffi")
ffi = library
pcall(ffi.cdef, [[
   struct mydyno_answer { double columns, rows, serial; };
   struct mydyno_param { int64_t number; double real; const char *bytes; uint32_t length; uint8_t kind; };
   struct mydyno_cell { const char *bytes; double length; };
   struct mydyno_functions {
      bool (*next_event)(const void *);
      void (*event_ended)(const void *);
      void (*event_given_up)(const void *);
      double (*draw)(const void *, uint32_t, double, double);
      double (*bits)(const void *);
      double (*fraction)(const void *);
      double (*unique)(const void *);
      void (*fill)(const void *, char *, uint32_t);
      uint8_t (*query)(const void *, uint32_t, const char *, size_t, struct mydyno_answer *);
      uint8_t (*execute)(const void *, uint32_t, uint32_t, struct mydyno_param **, uint32_t, struct mydyno_answer *);
      void *(*rows)(const void *, uint32_t, double);
      bool (*row)(void *, struct mydyno_cell *);
      void (*free)(void *);
   };
]])
local api = ffi.cast("const void *", native.api)
local functions = ffi.cast("const struct mydyno_functions *", native.functions)
local draw, fill = functions.draw, functions.fill
local answer = ffi.new("struct mydyno_answer")

-- A buffer of at least so many bytes; the next call may give the same.
local text, text_size = ffi.new("char[256]"), 256
local function text_buffer(size)
   if size > text_size then
      text, text_size = ffi.new("char[?]", size), size
   end
   return text
end

if not native.compiles then jit.off() end

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

if native.in_fiber then
   -- Other fibers go on while the command runs.
   local execute = os.execute
   os.execute = function(command)
      if command == nil then return execute() end
      return native.system(command)
   end
end

-- Random numbers -----------------------------------------------------------------------------------------------------

local function rand_string(pattern)
   local length = #pattern
   local buffer = text_buffer(length)
   ffi.copy(buffer, pattern, length)
   fill(api, buffer, length)
   return ffi.string(buffer, length)
end

sysbench.rand = {
   default = function(a, b) return draw(api, 0, a, b) end,
   uniform = function(a, b) return draw(api, 1, a, b) end,
   gaussian = function(a, b) return draw(api, 2, a, b) end,
   special = function(a, b) return draw(api, 3, a, b) end,
   pareto = function(a, b) return draw(api, 4, a, b) end,
   zipfian = function(a, b) return draw(api, 5, a, b) end,
   unique = function() return functions.unique(api) end,
   uniform_uint64 = function() return functions.bits(api) end,
   uniform_double = function() return functions.fraction(api) end,
   string = rand_string,
   varstring = function(min, max) return rand_string(string.rep("@", draw(api, 1, min, max))) end,
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
   local number = native.connect()
   if number == nil then error("connection creation failed", 2) end
   return setmetatable({number = number, driver = self, error = 0, sql_errno = 0}, connection)
end

function connection:disconnect()
   if self.number == nil then error("attempt to disconnect a closed connection", 2) end
   native.close(self.number)
   self.number = nil
   return true
end

function connection:reconnect()
   self.error = 0
   if self.number == nil or not native.reconnect(self.number) then error("reconnect failed", 2) end
   return true
end

-- What a statement has given, by the level of its answer: its result, or nil after an error.
local function take(con, stmt, level)
   if level == 0 then
      if con.error ~= 0 then con.error, con.sql_errno, con.sql_state, con.sql_errmsg = 0, 0, nil, nil end
      local columns = answer.columns
      return setmetatable({
         nfields = columns, nrows = answer.rows, counter = columns > 0 and 1 or 2, statement = stmt, con = con,
         serial = answer.serial,
      }, result)
   end
   if level == 3 then error("attempt to use a closed connection", 3) end
   con.error = level
   con.sql_errno, con.sql_state, con.sql_errmsg = native.failure(con.number)
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

local query_function, execute_function = functions.query, functions.execute

-- Sends a text, whatever comes of it.
local function send(con, sql)
   if con.number == nil then error("attempt to use a closed connection", 3) end
   if type(sql) ~= "string" then sql = tostring(sql) end
   return take(con, nil, query_function(api, con.number, sql, #sql, answer))
end

function connection:query(sql)
   -- No tail call: errors name the line that is three levels up.
   local rs = self:check_error(send(self, sql), sql)
   return rs
end

function connection:query_row(sql)
   local rs = self:check_error(send(self, sql), sql)
   if rs == nil or rs.nrows == 0 then return nil end
   local row = rs:fetch_row()
   if row == nil then return nil end
   return unpack(row, 1, rs.nfields)
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
   con:check_error(send(con, sql), sql)
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
   if self.number == nil then error("attempt to use a closed connection", 2) end
   local number = native.prepare(self.number, sql)
   if number == nil then
      self.error = 2
      self.sql_errno, self.sql_state, self.sql_errmsg = native.failure(self.number)
      error("SQL API error", 2)
   end
   return setmetatable({number = number, connection = self, count = 0, sql = sql}, statement)
end

local new_slot = ffi.typeof("struct mydyno_param[1]")
local new_slots = ffi.typeof("struct mydyno_param *[?]")

function statement:bind_create(kind, max_len)
   local slots = new_slot()
   return setmetatable({kind = kind, max_len = max_len or 0, slots = slots, slot = slots[0]}, param)
end

function statement:bind_param(...)
   local params = {...}
   local count = #params
   local slots = new_slots(count)
   for i = 1, count do slots[i - 1] = params[i].slots end
   -- The parameters are kept as long as their addresses.
   self.params, self.slots, self.count = params, slots, count
   return true
end

function statement:execute()
   local con = self.connection
   if con.number == nil or self.number == nil then error("attempt to use a closed statement", 2) end
   local rs = take(con, self, execute_function(api, con.number, self.number, self.slots, self.count, answer))
   rs = con:check_error(rs, "<prepared statement>")
   return rs
end

function statement:close()
   if self.number ~= nil and self.connection.number ~= nil then
      native.close_statement(self.connection.number, self.number)
   end
   self.number = nil
   return true
end

local function set_text(self, value)
   local slot, length = self.slot, #value
   if self.max_len > 0 and length > self.max_len then length = self.max_len end
   self.value = value
   slot.bytes, slot.length, slot.kind = value, length, 3
end

function param:set(value)
   local slot, kind = self.slot, self.kind
   if value == nil then
      slot.kind = 0
   elseif kind <= 4 then
      slot.number = type(value) == "number" and value or tonumber(value) or 0
      slot.kind = 1
   elseif kind <= 6 then
      slot.real = tonumber(value) or 0
      slot.kind = 2
   else
      set_text(self, type(value) == "string" and value or tostring(value))
   end
   return true
end

function param:set_rand_str(format)
   local length, slot = #format, self.slot
   local buffer = self.buffer
   if buffer == nil or self.size < length then
      buffer = ffi.new("char[?]", length)
      self.buffer, self.size = buffer, length
   end
   ffi.copy(buffer, format, length)
   fill(api, buffer, length)
   slot.bytes, slot.length, slot.kind = buffer, length, 3
   return true
end

local new_cells = ffi.typeof("struct mydyno_cell[?]")

-- The rows belong to the result once one was fetched; before, the next statement of the connection drops them.
local function rows_of(rs)
   local con = rs.con
   if con == nil or con.number == nil or rs.nfields == 0 then return nil end
   rs.con = nil
   local rows = functions.rows(api, con.number, rs.serial)
   if rows == nil then return nil end
   rs.rows = ffi.gc(rows, functions.free)
   rs.cells = new_cells(rs.nfields)
   return rs.rows
end

function result:fetch_row()
   local rows = self.rows or rows_of(self)
   if rows == nil or not functions.row(rows, self.cells) then return nil end
   local row, cells = {}, self.cells
   for i = 1, self.nfields do
      local cell = cells[i - 1]
      if cell.length >= 0 then row[i] = ffi.string(cell.bytes, cell.length) end
   end
   return row
end

function result:free()
   self.con = nil
   if self.rows ~= nil then
      functions.free(ffi.gc(self.rows, nil))
      self.rows = nil
   end
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

-- Where an error of an event came from.
local function trace(err)
   if type(err) ~= "string" then return err end
   return debug.traceback(err, 2)
end

-- The events of a thread. An event that a statement's error ended begins again.
function native.run_events(tid)
   while functions.next_event(api) do
      local ok, given = xpcall(event, trace, tid)
      while not ok do
         if type(given) ~= "table" or given.errcode ~= sysbench.error.RESTART_EVENT then error(given, 0) end
         if type(sysbench.hooks.before_restart_event) == "function" then
            sysbench.hooks.before_restart_event(given)
         end
         if native.is_over() then
            functions.event_given_up(api)
            return
         end
         ok, given = xpcall(event, trace, tid)
      end
      if given ~= nil and given ~= false then
         functions.event_given_up(api)
         return
      end
      functions.event_ended(api)
   end
end

-- FFI ------------------------------------------------------------------------------------------------------------------

local real = library
if found then
   local own = {
      SB_CNT_OTHER = 0, SB_CNT_READ = 1, SB_CNT_WRITE = 2, SB_CNT_TRX = 3, SB_CNT_ERROR = 4, SB_CNT_RECONNECT = 5,
      sb_counter_inc = function(tid, counter) native.count(tonumber(tid), tonumber(counter)) end,
      sb_counter_val = function(tid, counter) return native.count_of(tonumber(tid), tonumber(counter)) end,
      usleep = function(us) native.sleep(tonumber(us) / 1e6) return 0 end,
      sleep = function(seconds) native.sleep(tonumber(seconds)) return 0 end,
      poll = function(fds, count, timeout)
         if count ~= 0 then return real.C.poll(fds, count, timeout) end
         native.sleep(tonumber(timeout) / 1e3)
         return 0
      end,
      sb_more_events = function() return functions.next_event(api) end,
      sb_event_start = function() end,
      sb_event_stop = function() functions.event_ended(api) end,
      sb_rand_default = sysbench.rand.default,
      sb_rand_uniform = sysbench.rand.uniform,
      sb_rand_gaussian = sysbench.rand.gaussian,
      sb_rand_special = sysbench.rand.special,
      sb_rand_pareto = sysbench.rand.pareto,
      sb_rand_unique = sysbench.rand.unique,
      sb_rand_uniform_double = sysbench.rand.uniform_double,
   }
   local all = setmetatable({}, {
      __index = function(_, name)
         local value = own[name]
         if value ~= nil then return value end
         return real.C[name]
      end,
      __newindex = function(_, name, value) real.C[name] = value end,
   })
   ffi = setmetatable({C = all}, {__index = real})
   package.loaded.ffi = ffi
end

-- The API of 0.5 ---------------------------------------------------------------------------------------------------------

thread_id = native.tid
test = native.script_path
mysql_table_engine = "innodb"
myisam_max_rows = 1000000
DB_ERROR_NONE, DB_ERROR_RESTART_TRANSACTION, DB_ERROR_FAILED = 0, 1, 2

local function of_texts(draw_one)
   return function(a, b) return draw_one(tonumber(a), tonumber(b)) end
end

sb_rnd = function() return sysbench.rand.uniform(0, 2147483647) end
sb_rand = of_texts(sysbench.rand.default)
sb_rand_uniform = of_texts(sysbench.rand.uniform)
sb_rand_gaussian = of_texts(sysbench.rand.gaussian)
sb_rand_special = of_texts(sysbench.rand.special)
sb_rand_uniq = function(a, b) return sysbench.rand.unique() % (b - a + 1) + a end
sb_rand_str = sysbench.rand.string

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
   local rs = send(con, sql)
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
