-- Options that the script declares, and its commands.
local native = ...

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

local function command_named(name)
   local commands = sysbench.cmdline.commands
   local command = type(commands) == "table" and commands[name] or nil
   if type(command) == "function" then return {command} end
   return command
end

native.define(sysbench.cmdline, {
   read_cmdline_options = function() return true end,
   print_test_options = function() native.print_test_options() end,
   command_defined = function(name) return command_named(name) ~= nil end,
   command_parallel = function(name)
      local command = command_named(name)
      return command ~= nil and command[2] == true
   end,
   call_command = function(name)
      local command = command_named(name)
      if command == nil then return false end
      return command[1]() ~= false
   end,
})
