-- Prepared statements and their parameters.
local native = ...
local connection, take, execute, put = native.connection, native.take, native.execute, native.put

local statement, param = {}, {}
statement.__index, param.__index = statement, param
statement.__tostring = function() return "<sql_statement>" end
param.__tostring = function() return "<sql_param>" end

local function prepare(self, sql)
   if self.number == nil then error("attempt to use a closed connection", 2) end
   local number = native.prepare(self.number, sql)
   if number == nil then
      self.error = 2
      self.sql_errno, self.sql_state, self.sql_errmsg = native.failure(self.number)
      error("SQL API error", 2)
   end
   return setmetatable({number = number, connection = self, count = 0, sql = sql}, statement)
end
native.define(connection, {prepare = prepare})

function statement:bind_create(kind, max_len)
   return setmetatable(native.new_param({kind = kind, max_len = max_len or 0}), param)
end

function statement:bind_param(...)
   local params = {...}
   local count = #params
   self.params, self.given, self.count = params, native.bound(params, count), count
   return true
end

function statement:execute()
   local con = self.connection
   if con.number == nil or self.number == nil then error("attempt to use a closed statement", 2) end
   local rs = take(con, self, execute(con.number, self.number, self.given, self.count))
   if rs == nil then rs = con:check_error(nil, "<prepared statement>") end
   return rs
end

function statement:close()
   if self.number ~= nil and self.connection.number ~= nil then
      native.close_statement(self.connection.number, self.number)
   end
   self.number = nil
   return true
end

function param:set(value)
   local kind = self.kind
   if value == nil then
      put(self, 0)
   elseif kind <= 4 then
      put(self, 1, type(value) == "number" and value or tonumber(value) or 0)
   elseif kind <= 6 then
      put(self, 2, tonumber(value) or 0)
   else
      if type(value) ~= "string" then value = tostring(value) end
      if self.max_len > 0 and #value > self.max_len then value = string.sub(value, 1, self.max_len) end
      put(self, 3, value)
   end
   return true
end

function param:set_rand_str(format)
   native.put_pattern(self, format)
   return true
end
