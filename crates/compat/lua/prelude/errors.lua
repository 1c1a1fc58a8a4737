-- Errors of statements.
local native = ...

local function check_error(self, rs, query)
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
native.define(native.connection, {check_error = check_error})
