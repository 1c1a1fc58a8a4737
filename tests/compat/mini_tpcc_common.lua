ffi = require("ffi")
ffi.cdef("void sb_counter_inc(int, int);")

if sysbench.cmdline.command == nil then
   error("Command is required. Supported commands: prepare, run, cleanup, help")
end

DISTRICTS, CUSTOMERS, ITEMS, ORDERS = 3, 20, 60, 20

sysbench.cmdline.options = {
   scale = {"Warehouses", 2},
   tables = {"Sets of tables", 1},
   use_fk = {"Use foreign keys", 1},
   report_csv = {"Report in CSV", "no"},
   trx_level = {"Isolation level: RC or RR", "RR"},
}

local names = {"history", "new_orders", "order_line", "orders", "stock", "customer", "district", "item", "warehouse"}

local function create(con, t)
   local engine = "ENGINE=InnoDB"
   local q = function(sql) con:query(string.format(sql, t) .. " " .. engine) end
   q("CREATE TABLE IF NOT EXISTS warehouse%d (w_id SMALLINT NOT NULL PRIMARY KEY, w_name VARCHAR(10), w_tax DECIMAL(4,2), w_ytd DECIMAL(12,2))")
   q("CREATE TABLE IF NOT EXISTS district%d (d_id TINYINT NOT NULL, d_w_id SMALLINT NOT NULL, d_tax DECIMAL(4,2), d_ytd DECIMAL(12,2), d_next_o_id INT, PRIMARY KEY (d_w_id, d_id))")
   q("CREATE TABLE IF NOT EXISTS customer%d (c_id INT NOT NULL, c_d_id TINYINT NOT NULL, c_w_id SMALLINT NOT NULL, c_last VARCHAR(16), c_credit CHAR(2), c_discount DECIMAL(4,2), c_balance DECIMAL(12,2), c_payment_cnt INT, c_data TEXT, PRIMARY KEY (c_w_id, c_d_id, c_id), KEY (c_w_id, c_d_id, c_last))")
   q("CREATE TABLE IF NOT EXISTS history%d (h_c_id INT, h_c_d_id TINYINT, h_c_w_id SMALLINT, h_date DATETIME, h_amount DECIMAL(6,2), h_data VARCHAR(24))")
   q("CREATE TABLE IF NOT EXISTS orders%d (o_id INT NOT NULL, o_d_id TINYINT NOT NULL, o_w_id SMALLINT NOT NULL, o_c_id INT, o_entry_d DATETIME, o_carrier_id TINYINT, o_ol_cnt TINYINT, PRIMARY KEY (o_w_id, o_d_id, o_id), KEY (o_w_id, o_d_id, o_c_id, o_id))")
   q("CREATE TABLE IF NOT EXISTS new_orders%d (no_o_id INT NOT NULL, no_d_id TINYINT NOT NULL, no_w_id SMALLINT NOT NULL, PRIMARY KEY (no_w_id, no_d_id, no_o_id))")
   q("CREATE TABLE IF NOT EXISTS order_line%d (ol_o_id INT NOT NULL, ol_d_id TINYINT NOT NULL, ol_w_id SMALLINT NOT NULL, ol_number TINYINT NOT NULL, ol_i_id INT, ol_delivery_d DATETIME, ol_quantity TINYINT, ol_amount DECIMAL(6,2), PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number))")
   q("CREATE TABLE IF NOT EXISTS item%d (i_id INT NOT NULL PRIMARY KEY, i_name VARCHAR(24), i_price DECIMAL(5,2))")
   q("CREATE TABLE IF NOT EXISTS stock%d (s_i_id INT NOT NULL, s_w_id SMALLINT NOT NULL, s_quantity SMALLINT, s_ytd DECIMAL(8,0), PRIMARY KEY (s_w_id, s_i_id))")
   con:bulk_insert_init("INSERT INTO item" .. t .. " VALUES")
   for i = 1, ITEMS do
      con:bulk_insert_next(string.format("(%d, 'item-%s', %f)", i, sysbench.rand.string("@@@@"), sysbench.rand.uniform_double() * 99 + 1))
   end
   con:bulk_insert_done()
end

local function load(con, t, w)
   print(string.format("loading tables: %d for warehouse: %d", t, w))
   con:query(string.format("INSERT INTO warehouse%d VALUES (%d, '%s', 0.1, 300000)", t, w, sysbench.rand.string("name-@@@@@")))
   con:bulk_insert_init("INSERT INTO stock" .. t .. " VALUES")
   for i = 1, ITEMS do con:bulk_insert_next(string.format("(%d, %d, %d, 0)", i, w, sysbench.rand.uniform(10, 100))) end
   con:bulk_insert_done()
   for d = 1, DISTRICTS do
      con:query(string.format("INSERT INTO district%d VALUES (%d, %d, 0.1, 30000, %d)", t, d, w, ORDERS + 1))
      con:bulk_insert_init("INSERT INTO customer" .. t .. " VALUES")
      for c = 1, CUSTOMERS do
         con:bulk_insert_next(string.format("(%d, %d, %d, 'LAST%d', '%s', 0.2, -10, 1, '%s')", c, d, w, c % 5,
            sysbench.rand.uniform(1, 10) == 1 and "BC" or "GC", sysbench.rand.string(string.rep("@", 200))))
      end
      con:bulk_insert_done()
      con:bulk_insert_init("INSERT INTO orders" .. t .. " VALUES")
      for o = 1, ORDERS do con:bulk_insert_next(string.format("(%d, %d, %d, %d, NOW(), NULL, 5)", o, d, w, o)) end
      con:bulk_insert_done()
      con:bulk_insert_init("INSERT INTO new_orders" .. t .. " VALUES")
      for o = 11, ORDERS do con:bulk_insert_next(string.format("(%d, %d, %d)", o, d, w)) end
      con:bulk_insert_done()
      con:bulk_insert_init("INSERT INTO order_line" .. t .. " VALUES")
      for o = 1, ORDERS do
         for n = 1, 5 do
            con:bulk_insert_next(string.format("(%d, %d, %d, %d, %d, NULL, 5, %f)", o, d, w, n, sysbench.rand.uniform(1, ITEMS), 9.5))
         end
      end
      con:bulk_insert_done()
   end
end

function cmd_prepare()
   local con = sysbench.sql.driver():connect()
   for t = sysbench.tid % sysbench.opt.threads + 1, sysbench.opt.tables, sysbench.opt.threads do
      create(con, t)
      for w = 1, sysbench.opt.scale do load(con, t, w) end
   end
end

function cleanup()
   local con = sysbench.sql.driver():connect()
   for t = 1, sysbench.opt.tables do
      for _, name in ipairs(names) do con:query("DROP TABLE IF EXISTS " .. name .. t) end
   end
end

sysbench.cmdline.commands = {
   prepare = {cmd_prepare, sysbench.cmdline.PARALLEL_COMMAND},
}

local function place()
   return sysbench.rand.uniform(1, sysbench.opt.tables), sysbench.rand.uniform(1, sysbench.opt.scale),
      sysbench.rand.uniform(1, DISTRICTS), sysbench.rand.uniform(1, CUSTOMERS)
end

function new_order()
   local t, w, d, c = place()
   con:query("BEGIN")
   local rs = con:query(string.format([[SELECT c_discount, c_last, c_credit, w_tax FROM customer%d, warehouse%d
      WHERE w_id = %d AND c_w_id = w_id AND c_d_id = %d AND c_id = %d]], t, t, w, d, c))
   local discount, last, credit, tax = unpack(rs:fetch_row(), 1, rs.nfields)
   local next_id, d_tax = con:query_row(string.format("SELECT d_next_o_id, d_tax FROM district%d WHERE d_w_id = %d AND d_id = %d FOR UPDATE", t, w, d))
   con:query(string.format("UPDATE district%d SET d_next_o_id = %d WHERE d_id = %d AND d_w_id = %d", t, next_id + 1, d, w))
   con:query(string.format("INSERT INTO orders%d VALUES (%d, %d, %d, %d, NOW(), NULL, %d)", t, next_id, d, w, c, 3))
   con:query(string.format("INSERT INTO new_orders%d VALUES (%d, %d, %d)", t, next_id, d, w))
   local first = sysbench.rand.uniform(1, ITEMS - 20)
   for number = 1, 3 do
      local item = first + number * 5
      local price = con:query_row(string.format("SELECT i_price FROM item%d WHERE i_id = %d", t, item))
      if price == nil then
         ffi.C.sb_counter_inc(sysbench.tid, ffi.C.SB_CNT_ERROR)
         con:query("ROLLBACK")
         return
      end
      local quantity = con:query_row(string.format("SELECT s_quantity FROM stock%d WHERE s_i_id = %d AND s_w_id = %d FOR UPDATE", t, item, w))
      quantity = tonumber(quantity) > 15 and quantity - 5 or quantity + 86
      con:query(string.format("UPDATE stock%d SET s_quantity = %d, s_ytd = s_ytd + 5 WHERE s_i_id = %d AND s_w_id = %d", t, quantity, item, w))
      con:query(string.format("INSERT INTO order_line%d VALUES (%d, %d, %d, %d, %d, NULL, 5, %f)", t, next_id, d, w, number, item,
         5 * price * (1 + tax + d_tax) * (1 - discount)))
   end
   con:query("COMMIT")
end

function payment()
   local t, w, d, c = place()
   con:query("BEGIN")
   con:query(string.format("UPDATE warehouse%d SET w_ytd = w_ytd + 7 WHERE w_id = %d", t, w))
   con:query(string.format("UPDATE district%d SET d_ytd = d_ytd + 7 WHERE d_w_id = %d AND d_id = %d", t, w, d))
   local rs = con:query(string.format("SELECT c_id FROM customer%d WHERE c_w_id = %d AND c_d_id = %d AND c_last = 'LAST%d' ORDER BY c_id", t, w, d, c % 5))
   for i = 1, math.ceil(rs.nrows / 2) do c = rs:fetch_row()[1] end
   local credit = con:query_row(string.format("SELECT c_credit FROM customer%d WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d FOR UPDATE", t, w, d, c))
   con:query(string.format("UPDATE customer%d SET c_balance = c_balance - 7, c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d", t, w, d, c))
   con:query(string.format("INSERT INTO history%d VALUES (%d, %d, %d, NOW(), 7, '%s')", t, c, d, w, credit))
   con:query("COMMIT")
end

function order_status()
   local t, w, d, c = place()
   con:query("BEGIN")
   con:query(string.format("SELECT c_balance, c_last FROM customer%d WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d", t, w, d, c))
   local o = con:query_row(string.format("SELECT o_id FROM orders%d WHERE o_w_id = %d AND o_d_id = %d AND o_c_id = %d ORDER BY o_id DESC LIMIT 1", t, w, d, c))
   if o ~= nil then
      local rs = con:query(string.format("SELECT ol_i_id, ol_quantity, ol_amount FROM order_line%d WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id = %d", t, w, d, o))
      for i = 1, rs.nrows do local item, quantity, amount = unpack(rs:fetch_row(), 1, rs.nfields) end
   end
   con:query("COMMIT")
end

function delivery()
   local t, w = place()
   con:query("BEGIN")
   for d = 1, DISTRICTS do
      local rs = con:query(string.format("SELECT no_o_id FROM new_orders%d WHERE no_d_id = %d AND no_w_id = %d ORDER BY no_o_id LIMIT 1 FOR UPDATE", t, d, w))
      if rs.nrows > 0 then
         local o = unpack(rs:fetch_row(), 1, rs.nfields)
         con:query(string.format("DELETE FROM new_orders%d WHERE no_o_id = %d AND no_d_id = %d AND no_w_id = %d", t, o, d, w))
         con:query(string.format("UPDATE orders%d SET o_carrier_id = 3 WHERE o_id = %d AND o_d_id = %d AND o_w_id = %d", t, o, d, w))
         con:query(string.format("UPDATE order_line%d SET ol_delivery_d = NOW() WHERE ol_o_id = %d AND ol_d_id = %d AND ol_w_id = %d", t, o, d, w))
      end
   end
   con:query("COMMIT")
end

function stock_level()
   local t, w, d = place()
   con:query("BEGIN")
   local next_id = con:query_row(string.format("SELECT d_next_o_id FROM district%d WHERE d_id = %d AND d_w_id = %d", t, d, w))
   con:query(string.format([[SELECT COUNT(DISTINCT s_i_id) FROM order_line%d, stock%d WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id < %d
      AND ol_o_id >= %d AND s_w_id = %d AND s_i_id = ol_i_id AND s_quantity < 20]], t, t, w, d, next_id, next_id - 20, w))
   con:query("COMMIT")
end
