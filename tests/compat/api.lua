function event() end
function prepare()
   local drv = sysbench.sql.driver()
   local con = drv:connect()
   print(drv, con, drv:name(), con.sql_errno, con.driver == drv)
   local rs = con:query("SELECT 1 a, NULL b, 'x' c UNION ALL SELECT 2, 3, 'y'")
   print(rs, rs.nrows, rs.nfields)
   local row = rs:fetch_row()
   print(row[1], row[2], row[3])
   row = rs:fetch_row()
   print(row[1], row[2], row[3])
   print(rs:fetch_row())
   rs:free()
   print(con:query_row("SELECT 7, 8"))
   con:query("CREATE TABLE tt(a INT, b VARCHAR(10), c DOUBLE, d BIGINT)")
   local stmt = con:prepare("INSERT INTO tt VALUES (?, ?, ?, ?)")
   print(stmt, stmt.connection == con)
   local p = {
      stmt:bind_create(sysbench.sql.type.INT), stmt:bind_create(sysbench.sql.type.VARCHAR, 10),
      stmt:bind_create(sysbench.sql.type.INT), stmt:bind_create(sysbench.sql.type.BIGINT),
   }
   print(p[1])
   stmt:bind_param(unpack(p))
   p[1]:set(5)
   p[2]:set("abc")
   p[3]:set(2)
   p[4]:set(9000000000)
   stmt:execute()
   p[1]:set(nil)
   p[2]:set_rand_str("##-@@")
   stmt:execute()
   stmt:close()
   print(con:query_row("SELECT a, b, c, d FROM tt WHERE a = 5"))
   print(con:query_row("SELECT COUNT(*), SUM(a IS NULL), SUM(b RLIKE '^[0-9]{2}-[a-z]{2}$') FROM tt"))
   con:bulk_insert_init("INSERT INTO tt(a) VALUES")
   for i = 1, 1000 do con:bulk_insert_next("(" .. i .. ")") end
   con:bulk_insert_done()
   print(con:query_row("SELECT COUNT(*) FROM tt"))
   print(pcall(con.query, con, "selekt"))
   print(con.sql_errno)
   print(pcall(con.query_row, con, "SELECT * FROM tt WHERE 0"))
   con:query("DROP TABLE tt")
   local names = {}
   for name, number in pairs(sysbench.sql.type) do names[number + 1] = name end
   print(table.concat(names, " "))
   for name, number in pairs({NONE = 0, IGNORABLE = 1, FATAL = 2}) do assert(sysbench.sql.error[name] == number) end
end
function cleanup()
   for i = 1, 1000 do
      for _, draw in ipairs({"default", "uniform", "gaussian", "special", "pareto"}) do
         local number = sysbench.rand[draw](10, 20)
         assert(number >= 10 and number <= 20 and number % 1 == 0, draw)
      end
      local double = sysbench.rand.uniform_double()
      assert(double >= 0 and double < 1)
   end
   local seen = {}
   for i = 1, 1000 do
      local number = sysbench.rand.unique()
      assert(not seen[number])
      seen[number] = true
   end
   print(#sysbench.rand.string("##-@@"), sysbench.rand.string("x-y"))
   local histogram = sysbench.histogram.new(10, 1, 100)
   histogram:update(5)
   histogram:update(5)
   histogram:print()
end
