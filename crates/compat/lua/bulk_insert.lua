-- Rows into a table of each thread, many in one statement.

function prepare()
   local con = sysbench.sql.driver():connect()
   for i = 1, sysbench.opt.threads do
      print(string.format("Creating table 'sbtest%d'...", i))
      con:query(string.format(
         "CREATE TABLE IF NOT EXISTS sbtest%d (id INTEGER NOT NULL, k INTEGER DEFAULT '0' NOT NULL, PRIMARY KEY (id))", i))
   end
end

function thread_init()
   con = sysbench.sql.driver():connect()
   row = 0
   con:bulk_insert_init("INSERT INTO sbtest" .. sysbench.tid + 1 .. " VALUES")
end

function event()
   row = row + 1
   con:bulk_insert_next(string.format("(%d, %d)", row, row))
end

function thread_done()
   con:bulk_insert_done()
   con:disconnect()
end

function cleanup()
   local con = sysbench.sql.driver():connect()
   for i = 1, sysbench.opt.threads do
      print(string.format("Dropping table 'sbtest%d'...", i))
      con:query("DROP TABLE IF EXISTS sbtest" .. i)
   end
end
