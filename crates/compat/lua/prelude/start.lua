-- The table `sysbench`, output, and what brings the other parts of the API: all of them before the script's body where the
-- script is compiled, else each when one of its names is first looked up, which saves memory where states are many.
local native = ...

sysbench = sysbench or {}
sysbench.tid = native.tid
sysbench.version = "1.0.20"
sysbench.version_string = "sysbench 1.0.20"
sysbench.hooks = {}
sysbench.error = {NONE = 0, RESTART_EVENT = 1}

function print(...)
   local words = {}
   for i = 1, select("#", ...) do
      words[i] = tostring((select(i, ...)))
   end
   native.print(table.concat(words, "\t") .. "\n")
end

-- Puts values into a table, except where the script has put its own.
function native.define(into, values)
   for name, value in next, values do
      if rawget(into, name) == nil then rawset(into, name, value) end
   end
end

-- What a library of Lua has to do differently here.
function native.adapt(name, library)
   if name == "io" then
      library.stdout:setvbuf("no")
   elseif name == "os" and native.in_fiber then
      -- Other fibers go on while the command runs.
      local execute = library.execute
      library.execute = function(command)
         if command == nil then return execute() end
         return native.system(command)
      end
   elseif name == "jit" and native.is_lazy then
      library.off()
   end
end

if not native.is_lazy then
   native.adapt("io", io)
   native.adapt("os", os)
end
