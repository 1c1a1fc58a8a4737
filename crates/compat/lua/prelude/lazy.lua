-- Tables that are filled when a script first looks into them: libraries of Lua, parts of the API, options.
local native = ...

-- Whoever looks at all names of such a table sees them all.
local each = pairs
function pairs(t)
   if type(t) ~= "table" then
      error("bad argument #1 to 'pairs' (table expected, got " .. (t == nil and "nil" or type(t)) .. ")", 2)
   end
   local meta = getmetatable(t)
   local fill = type(meta) == "table" and rawget(meta, "mydyno_fill")
   if fill then fill(t) end
   return each(t)
end

-- Libraries of Lua.
local names = {}
local function open(library)
   local name = names[library]
   setmetatable(library, nil)
   if name == "ffi" then
      native.part("ffi_names")(native)
   else
      native.open(name)
      native.adapt(name, library)
   end
end
local closed = {
   mydyno_fill = open,
   __index = function(library, key)
      open(library)
      return library[key]
   end,
}
for name in ("table math io os debug bit jit ffi"):gmatch("%a+") do
   local library = setmetatable({}, closed)
   names[library] = name
   package.loaded[name], _G[name] = library, library
end

-- Parts of the API, by the table and the name in it that they bring.
local loaded = {}
function native.lazy(t, kind)
   return setmetatable(t, {
      __index = function(_, key)
         local part = native.home(kind, key)
         if part == nil or loaded[part] then return nil end
         loaded[part] = true
         native.part(part)(native)
         return rawget(t, key)
      end,
   })
end
native.lazy(sysbench, "sysbench")
native.lazy(_G, "global")

-- The options of the command line.
function native.options(option_of, all)
   return setmetatable({}, {
      mydyno_fill = function(options) native.define(options, all()) end,
      __index = function(options, name)
         local value = option_of(name)
         if value ~= nil then rawset(options, name, value) end
         return value
      end,
   })
end
