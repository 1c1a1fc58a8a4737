-- Commands of its own, prepare in parallel, many rows by bulk insert.
if sysbench.cmdline.command == nil then
   error("Command is required. Supported commands: prepare, check, drop, run, help")
end

sysbench.cmdline.options = {
   books = {"Number of tables", 4},
   pages = {"Rows of a table", 300},
   engine = {"Storage engine", "innodb"},
   checked = {"Check after loading", false},
}

local function connect()
   local drv = sysbench.sql.driver()
   return drv:connect()
end

function fill(con, number)
   print(string.format("Loading book%d...", number))
   con:query(string.format("CREATE TABLE IF NOT EXISTS book%d (id INT PRIMARY KEY, word CHAR(20), KEY (word)) ENGINE=%s",
      number, sysbench.opt.engine))
   con:bulk_insert_init("INSERT INTO book" .. number .. " (id, word) VALUES")
   for i = 1, sysbench.opt.pages do
      con:bulk_insert_next(string.format("(%d, '%s')", i, sysbench.rand.string("@@@@@@@@")))
   end
   con:bulk_insert_done()
end

function cmd_prepare()
   local con = connect()
   for i = sysbench.tid % sysbench.opt.threads + 1, sysbench.opt.books, sysbench.opt.threads do
      fill(con, i)
   end
   con:disconnect()
end

function cmd_check()
   local con = connect()
   local sum = 0
   for i = 1, sysbench.opt.books do
      local rs = con:query("SELECT COUNT(*) FROM book" .. i)
      sum = sum + rs:fetch_row()[1]
   end
   print("rows:", sum)
   if sum ~= sysbench.opt.books * sysbench.opt.pages then return false end
end

function cmd_drop()
   local con = connect()
   for i = 1, sysbench.opt.books do con:query("DROP TABLE IF EXISTS book" .. i) end
end

sysbench.cmdline.commands = {
   prepare = {cmd_prepare, sysbench.cmdline.PARALLEL_COMMAND},
   check = {cmd_check},
   drop = {cmd_drop},
}

function thread_init()
   con = connect()
end

function event()
   local id = sysbench.rand.uniform(1, sysbench.opt.pages)
   local rs = con:query(string.format("SELECT id, word FROM book%d WHERE id BETWEEN %d AND %d",
      sysbench.rand.uniform(1, sysbench.opt.books), id, id + 9))
   for i = 1, rs.nrows do
      local row = rs:fetch_row()
      if row[2] == nil then error("no word") end
   end
end

function thread_done()
   con:disconnect()
end
