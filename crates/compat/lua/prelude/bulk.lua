-- Inserts of many rows by one statement, and what is seldom done with a connection.
local native = ...
local send = native.send

local BULK_BYTES = 512 * 1024

local function flush(con)
   local bulk = con.bulk
   if bulk == nil or #bulk.parts == 0 then return end
   local sql = bulk.head .. " " .. table.concat(bulk.parts, ",")
   bulk.parts, bulk.bytes = {}, #bulk.head
   if send(con, sql) == nil then con:check_error(nil, sql) end
end

native.define(native.connection, {
   bulk_insert_init = function(self, sql)
      self.bulk = {head = sql, parts = {}, bytes = #sql}
      return true
   end,
   bulk_insert_next = function(self, values)
      local bulk = self.bulk
      if bulk == nil then error("bulk_insert_next() before bulk_insert_init()", 2) end
      if bulk.bytes + #values + 1 > BULK_BYTES then flush(self) end
      bulk.parts[#bulk.parts + 1] = values
      bulk.bytes = bulk.bytes + #values + 1
      return true
   end,
   bulk_insert_done = function(self)
      flush(self)
      self.bulk = nil
      return true
   end,
   reconnect = function(self)
      self.error = 0
      if self.number == nil or not native.reconnect(self.number) then error("reconnect failed", 2) end
      return true
   end,
})
