-- Rows of results.
local native = ...
local connection, result, send = native.connection, native.result, native.send

-- The rows belong to the result once one was fetched; before, the next statement of the connection drops them.
local function has_rows(rs)
   if rs.rows ~= nil then return true end
   local con = rs.con
   if con == nil or con.number == nil or rs.nfields == 0 then return false end
   rs.con = nil
   return native.open_rows(rs, con.number)
end

native.define(result, {
   fetch_row = function(self)
      if not has_rows(self) then return nil end
      return native.next_row(self)
   end,
   free = function(self)
      self.con = nil
      if self.rows ~= nil then
         native.close_rows(self)
         self.rows = nil
      end
      return true
   end,
})

native.define(connection, {
   query_row = function(self, sql)
      local rs = send(self, sql)
      if rs == nil then rs = self:check_error(nil, sql) end
      if rs == nil or rs.nrows == 0 then return nil end
      local row = rs:fetch_row()
      if row == nil then return nil end
      return unpack(row, 1, rs.nfields)
   end,
})
