-- What scripts call often, through ffi, so that LuaJIT compiles the calls with the script; api.rs has the functions.
local native = ...
local ffi = require("ffi")

ffi.cdef([[
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
local query, execute = functions.query, functions.execute
local answer = ffi.new("struct mydyno_answer")

function native.next_event() return functions.next_event(api) end

function native.event_ended() functions.event_ended(api) end

function native.event_given_up() functions.event_given_up(api) end

-- Random numbers -----------------------------------------------------------------------------------------------------

function native.draw(kind, low, high) return draw(api, kind, low, high) end

function native.bits() return functions.bits(api) end

function native.fraction() return functions.fraction(api) end

function native.unique() return functions.unique(api) end

-- A buffer of at least so many bytes; the next call may give the same.
local text, text_size = ffi.new("char[256]"), 256
local function text_buffer(size)
   if size > text_size then
      text, text_size = ffi.new("char[?]", size), size
   end
   return text
end

function native.fill(pattern)
   local length = #pattern
   local buffer = text_buffer(length)
   ffi.copy(buffer, pattern, length)
   fill(api, buffer, length)
   return ffi.string(buffer, length)
end

-- Statements: level of the answer, columns, rows, number --------------------------------------------------------------

function native.query(number, sql)
   local level = query(api, number, sql, #sql, answer)
   return level, answer.columns, answer.rows, answer.serial
end

function native.execute(number, statement, bound, count)
   local level = execute(api, number, statement, bound, count, answer)
   return level, answer.columns, answer.rows, answer.serial
end

-- Parameters ---------------------------------------------------------------------------------------------------------

local new_slot = ffi.typeof("struct mydyno_param[1]")
local new_slots = ffi.typeof("struct mydyno_param *[?]")

function native.new_param(param)
   local slots = new_slot()
   param.slots, param.slot = slots, slots[0]
   return param
end

-- What a statement takes for the parameters, which their caller keeps as long as their addresses.
function native.bound(params, count)
   local slots = new_slots(count)
   for i = 1, count do slots[i - 1] = params[i].slots end
   return slots
end

-- Gives a parameter its value: 0 NULL, 1 a whole number, 2 a number, 3 a text.
function native.put(param, kind, value)
   local slot = param.slot
   if kind == 1 then
      slot.number = value
   elseif kind == 2 then
      slot.real = value
   elseif kind == 3 then
      param.value = value
      slot.bytes, slot.length = value, #value
   end
   slot.kind = kind
end

function native.put_pattern(param, pattern)
   local length, slot = #pattern, param.slot
   local buffer = param.buffer
   if buffer == nil or param.size < length then
      buffer = ffi.new("char[?]", length)
      param.buffer, param.size = buffer, length
   end
   ffi.copy(buffer, pattern, length)
   fill(api, buffer, length)
   slot.bytes, slot.length, slot.kind = buffer, length, 3
end

-- Rows ---------------------------------------------------------------------------------------------------------------

local new_cells = ffi.typeof("struct mydyno_cell[?]")

-- Gives a result its rows; `false` where they are gone.
function native.open_rows(rs, number)
   local rows = functions.rows(api, number, rs.serial)
   if rows == nil then return false end
   rs.rows = ffi.gc(rows, functions.free)
   rs.cells = new_cells(rs.nfields)
   return true
end

function native.next_row(rs)
   local row, cells = {}, rs.cells
   if not functions.row(rs.rows, cells) then return nil end
   for i = 1, rs.nfields do
      local cell = cells[i - 1]
      if cell.length >= 0 then row[i] = ffi.string(cell.bytes, cell.length) end
   end
   return row
end

function native.close_rows(rs) functions.free(ffi.gc(rs.rows, nil)) end
