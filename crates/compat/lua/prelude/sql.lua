-- Drivers, connections and the results of statements.
local native = ...

sysbench.sql = {
   type = {
      NONE = 0, TINYINT = 1, SMALLINT = 2, INT = 3, BIGINT = 4, FLOAT = 5, DOUBLE = 6, TIME = 7, DATE = 8, DATETIME = 9,
      TIMESTAMP = 10, CHAR = 11, VARCHAR = 12,
   },
   error = {NONE = 0, IGNORABLE = 1, FATAL = 2},
}

local driver, connection, result = {}, {}, {}
driver.__index, connection.__index, result.__index = driver, connection, result
driver.__tostring = function() return "<sql_driver>" end
connection.__tostring = function() return "<sql_connection>" end
result.__tostring = function() return "<sql_result>" end
native.connection, native.result = connection, result
if native.is_lazy then
   native.lazy(connection, "connection")
   native.lazy(result, "result")
end

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

-- What a statement has given, by the level of its answer: its result, or nil after an error.
local function take(con, stmt, level, columns, rows, serial)
   if level == 0 then
      if con.error ~= 0 then con.error, con.sql_errno, con.sql_state, con.sql_errmsg = 0, 0, nil, nil end
      return setmetatable({
         nfields = columns, nrows = rows, counter = columns > 0 and 1 or 2, statement = stmt, con = con, serial = serial,
      }, result)
   end
   if level == 3 then error("attempt to use a closed connection", 3) end
   con.error = level
   con.sql_errno, con.sql_state, con.sql_errmsg = native.failure(con.number)
   return nil
end
native.take = take

local query = native.query

-- Sends a text, whatever comes of it.
local function send(con, sql)
   if con.number == nil then error("attempt to use a closed connection", 3) end
   if type(sql) ~= "string" then sql = tostring(sql) end
   return take(con, nil, query(con.number, sql))
end
native.send = send

function connection:query(sql)
   local rs = send(self, sql)
   -- No tail call: errors name the line that is three levels up.
   if rs == nil then rs = self:check_error(nil, sql) end
   return rs
end
