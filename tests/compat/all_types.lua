-- Prepared statements with parameters of every type.
local t = sysbench.sql.type
local kinds = {
   {"a", "TINYINT", t.TINYINT, 7}, {"b", "SMALLINT", t.SMALLINT, 300}, {"c", "INT", t.INT, 70000},
   {"d", "BIGINT", t.BIGINT, 5000000000}, {"h", "DATE", t.DATE, "2024-02-29"},
   {"i", "DATETIME", t.DATETIME, "2024-02-29 12:13:14"}, {"j", "TIMESTAMP", t.TIMESTAMP, "2024-02-29 12:13:14"},
   {"k", "CHAR(10)", t.CHAR, "ten"}, {"l", "VARCHAR(30)", t.VARCHAR, "it's a \"text\""},
}

sysbench.cmdline.options = {
   show = {"Print what comes back", true},
}

function prepare()
   local con = sysbench.sql.driver():connect()
   local columns = {}
   for i, kind in ipairs(kinds) do columns[i] = kind[1] .. " " .. kind[2] .. " NULL" end
   con:query("CREATE TABLE kinds (id INT PRIMARY KEY AUTO_INCREMENT, " .. table.concat(columns, ", ") .. ")")
end

function cleanup()
   sysbench.sql.driver():connect():query("DROP TABLE IF EXISTS kinds")
end

function thread_init()
   drv = sysbench.sql.driver()
   con = drv:connect()
   local names, marks = {}, {}
   for i, kind in ipairs(kinds) do names[i], marks[i] = kind[1], "?" end
   insert = con:prepare("INSERT INTO kinds (" .. table.concat(names, ",") .. ") VALUES (" .. table.concat(marks, ",") .. ")")
   params = {}
   for i, kind in ipairs(kinds) do
      local text = type(kind[4]) == "string"
      -- Dates as texts, as scripts do it.
      params[i] = text and insert:bind_create(t.VARCHAR, 60) or insert:bind_create(kind[3])
   end
   insert:bind_param(unpack(params))
   pick = con:prepare("SELECT " .. table.concat(names, ",") .. " FROM kinds WHERE a = ? ORDER BY id LIMIT 1")
   wanted = pick:bind_create(t.INT)
   pick:bind_param(wanted)
end

function event()
   for i, kind in ipairs(kinds) do params[i]:set(kind[4]) end
   insert:execute()
   for i = 1, #kinds do params[i]:set(nil) end
   insert:execute()
   params[8]:set_rand_str("@@##")
   insert:execute()
   wanted:set(7)
   local rs = pick:execute()
   if sysbench.opt.show then print("rows", rs.nrows) end
   local row = con:query_row("SELECT COUNT(*) FROM kinds WHERE b IS NULL")
   if tonumber(row) < 1 then error("NULL is lost") end
   -- The text protocol shows what has been written.
   local text = con:query("SELECT a, b, c, d, h, i, k, l FROM kinds WHERE a = 7 ORDER BY id LIMIT 1")
   local values = text:fetch_row()
   if sysbench.opt.show then print(table.concat(values, "|")) end
end

function thread_done()
   insert:close()
   pick:close()
   con:disconnect()
end
