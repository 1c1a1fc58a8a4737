-- The API of sysbench 0.5.
local native = ...
local sql_types = sysbench.sql.type
local send = native.send

local function of_texts(draw_one)
   return function(a, b) return draw_one(tonumber(a), tonumber(b)) end
end

native.define(_G, {
   thread_id = native.tid,
   test = native.script_path,
   mysql_table_engine = "innodb",
   myisam_max_rows = 1000000,
   DB_ERROR_NONE = 0, DB_ERROR_RESTART_TRANSACTION = 1, DB_ERROR_FAILED = 2,
   sb_rnd = function() return sysbench.rand.uniform(0, 2147483647) end,
   sb_rand = of_texts(sysbench.rand.default),
   sb_rand_uniform = of_texts(sysbench.rand.uniform),
   sb_rand_gaussian = of_texts(sysbench.rand.gaussian),
   sb_rand_special = of_texts(sysbench.rand.special),
   sb_rand_uniq = function(a, b) return sysbench.rand.unique() % (b - a + 1) + a end,
   sb_rand_str = sysbench.rand.string,
})

local current
local db = {}

function db.connect()
   local found_driver = sysbench.sql.driver()
   db_driver = found_driver:name()
   current = found_driver:connect()
   return current
end

local function at_hand()
   if current == nil then db_connect() end
   return current
end

function db.disconnect()
   if current ~= nil then current:disconnect() end
   current = nil
end

function db.query(sql)
   local con = at_hand()
   local rs = send(con, sql)
   if rs == nil and con.error == sysbench.sql.error.FATAL then error("db_query() failed", 2) end
   if rs == nil then rs = con:check_error(nil, sql) end
   return rs
end

function db.bulk_insert_init(sql) return at_hand():bulk_insert_init(sql) end

function db.bulk_insert_next(values) return at_hand():bulk_insert_next(values) end

function db.bulk_insert_done() return at_hand():bulk_insert_done() end

function db.prepare(sql) return at_hand():prepare(sql) end

function db.bind_param(stmt, values)
   stmt.bound = values
end

function db.bind_result() end

function db.execute(stmt)
   if stmt.bound ~= nil then
      local params = {}
      for i, value in ipairs(stmt.bound) do
         local kind = type(value) == "number" and sql_types.BIGINT or sql_types.VARCHAR
         params[i] = stmt:bind_create(kind, 255)
         params[i]:set(value)
      end
      stmt:bind_param(unpack(params))
   end
   return stmt:execute()
end

function db.store_results() end

function db.free_results(rs)
   if type(rs) == "table" and rs.free then rs:free() end
end

function db.close(stmt) return stmt:close() end

local globals = {}
for name, value in next, db do globals["db_" .. name] = value end
native.define(_G, globals)
native.define(sysbench, {db = db})
