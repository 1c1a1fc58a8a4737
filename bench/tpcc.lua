-- TPC-C's transactions for stock sysbench, in the manner of the public script: each step is a text statement of its own, 47 for a
-- new order of ten lines; warehouses are drawn for each transaction, constants of NURand for each draw, and no line and no
-- payment is of another warehouse. It runs on the tables of `mydyno bench tpcc prepare`: see bench/beside_tpcc.py.

sysbench.cmdline.options = {
   warehouses = {"Number of warehouses of the tables", 1},
}

local PARTS = {"BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"}
local DISTRICTS, CUSTOMERS, ITEMS = 10, 3000, 100000

local function uniform(from, to)
   return sysbench.rand.uniform(from, to)
end

-- The constant is drawn at each call, as the public script does: the result is nearly uniform.
local function nurand(a, from, to)
   local c = uniform(0, a)
   return (bit.bor(uniform(0, a), uniform(from, to)) + c) % (to - from + 1) + from
end

local function last_name()
   local n = nurand(255, 0, 999)
   return PARTS[math.floor(n / 100) + 1] .. PARTS[math.floor(n / 10) % 10 + 1] .. PARTS[n % 10 + 1]
end

local function customer()
   return nurand(1023, 1, CUSTOMERS)
end

function thread_init()
   drv = sysbench.sql.driver()
   con = drv:connect()
end

function thread_done()
   con:disconnect()
end

local function by_name(w, d)
   local rs = con:query(([[SELECT c_id FROM customer WHERE c_w_id = %d AND c_d_id = %d AND c_last = '%s' ORDER BY c_first]])
      :format(w, d, last_name()))
   local middle = math.floor((rs.nrows + 1) / 2)
   local id
   for i = 1, rs.nrows do
      local row = rs:fetch_row()
      if i == middle then
         id = row[1]
      end
   end
   return tonumber(id)
end

local function either_way(w, d)
   if uniform(1, 100) <= 60 then
      return by_name(w, d)
   end
   return customer()
end

local function new_order(w)
   local d, c, count = uniform(1, DISTRICTS), customer(), uniform(5, 15)
   local rolls_back = uniform(1, 100) == 1
   con:query("BEGIN")
   local discount, _, _, w_tax = con:query_row(([[SELECT c_discount, c_last, c_credit, w_tax FROM warehouse, customer
      WHERE w_id = %d AND c_w_id = w_id AND c_d_id = %d AND c_id = %d]]):format(w, d, c))
   local next_order, d_tax = con:query_row(([[SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = %d AND d_id = %d FOR UPDATE]])
      :format(w, d))
   local o = tonumber(next_order)
   con:query(([[UPDATE district SET d_next_o_id = %d WHERE d_w_id = %d AND d_id = %d]]):format(o + 1, w, d))
   con:query(([[INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local)
      VALUES (%d, %d, %d, %d, NOW(), NULL, %d, 1)]]):format(w, d, o, c, count))
   con:query(([[INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (%d, %d, %d)]]):format(w, d, o))
   for number = 1, count do
      local item, quantity = nurand(8191, 1, ITEMS), uniform(1, 10)
      if rolls_back and number == count then
         item = ITEMS + 1
      end
      local rs = con:query(([[SELECT i_price, i_name, i_data FROM item WHERE i_id = %d]]):format(item))
      if rs.nrows == 0 then
         con:query("ROLLBACK")
         return
      end
      local row = rs:fetch_row()
      local price, i_data = tonumber(row[1]), row[3]
      local left, s_data, info = con:query_row(([[SELECT s_quantity, s_data, s_dist_%02d FROM stock
         WHERE s_w_id = %d AND s_i_id = %d FOR UPDATE]]):format(d, w, item))
      left = tonumber(left)
      local brand = i_data:find("ORIGINAL", 1, true) and s_data:find("ORIGINAL", 1, true)
      left = left > quantity and left - quantity or left - quantity + 91
      con:query(([[UPDATE stock SET s_quantity = %d WHERE s_w_id = %d AND s_i_id = %d]]):format(left, w, item))
      local amount = quantity * price * (1 + tonumber(w_tax) + tonumber(d_tax)) * (1 - tonumber(discount))
      con:query(([[INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d,
         ol_quantity, ol_amount, ol_dist_info) VALUES (%d, %d, %d, %d, %d, %d, NULL, %d, %.2f, '%s')]])
         :format(w, d, o, number, item, w, quantity, amount, info))
   end
   con:query("COMMIT")
end

local function payment(w)
   local d, amount = uniform(1, DISTRICTS), uniform(100, 500000) / 100
   con:query("BEGIN")
   con:query(([[UPDATE warehouse SET w_ytd = w_ytd + %.2f WHERE w_id = %d]]):format(amount, w))
   local w_name = con:query_row(([[SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = %d]])
      :format(w))
   con:query(([[UPDATE district SET d_ytd = d_ytd + %.2f WHERE d_w_id = %d AND d_id = %d]]):format(amount, w, d))
   local d_name = con:query_row(([[SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district
      WHERE d_w_id = %d AND d_id = %d]]):format(w, d))
   local c = either_way(w, d)
   local _, credit = con:query_row(([[SELECT c_balance, c_credit, c_first, c_middle, c_last, c_street_1, c_street_2, c_city,
      c_state, c_zip, c_phone, c_since, c_credit_lim, c_discount FROM customer
      WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d FOR UPDATE]]):format(w, d, c))
   if credit == "BC" then
      local data = con:query_row(([[SELECT c_data FROM customer WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d]]):format(w, d, c))
      data = ("%d %d %d %d %d %.2f %s"):format(c, d, w, d, w, amount, data):sub(1, 500)
      con:query(([[UPDATE customer SET c_balance = c_balance - %.2f, c_ytd_payment = c_ytd_payment + %.2f,
         c_payment_cnt = c_payment_cnt + 1, c_data = '%s' WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d]])
         :format(amount, amount, data, w, d, c))
   else
      con:query(([[UPDATE customer SET c_balance = c_balance - %.2f, c_ytd_payment = c_ytd_payment + %.2f,
         c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d]]):format(amount, amount, w, d, c))
   end
   con:query(([[INSERT INTO history (h_c_w_id, h_c_d_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data)
      VALUES (%d, %d, %d, %d, %d, NOW(), %.2f, '%s    %s')]]):format(w, d, c, d, w, amount, w_name, d_name))
   con:query("COMMIT")
end

local function order_status(w)
   local d = uniform(1, DISTRICTS)
   con:query("BEGIN")
   local c = either_way(w, d)
   con:query_row(([[SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d]])
      :format(w, d, c))
   local o = con:query_row(([[SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = %d AND o_d_id = %d AND o_c_id = %d
      ORDER BY o_id DESC LIMIT 1]]):format(w, d, c))
   local rs = con:query(([[SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line
      WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id = %d]]):format(w, d, tonumber(o)))
   for _ = 1, rs.nrows do
      rs:fetch_row()
   end
   con:query("COMMIT")
end

local function delivery(w)
   local carrier = uniform(1, 10)
   con:query("BEGIN")
   for d = 1, DISTRICTS do
      local rs = con:query(([[SELECT no_o_id FROM new_order WHERE no_w_id = %d AND no_d_id = %d ORDER BY no_o_id LIMIT 1 FOR UPDATE]])
         :format(w, d))
      if rs.nrows > 0 then
         local o = tonumber(rs:fetch_row()[1])
         con:query(([[DELETE FROM new_order WHERE no_w_id = %d AND no_d_id = %d AND no_o_id = %d]]):format(w, d, o))
         local c = con:query_row(([[SELECT o_c_id FROM orders WHERE o_w_id = %d AND o_d_id = %d AND o_id = %d]]):format(w, d, o))
         con:query(([[UPDATE orders SET o_carrier_id = %d WHERE o_w_id = %d AND o_d_id = %d AND o_id = %d]])
            :format(carrier, w, d, o))
         con:query(([[UPDATE order_line SET ol_delivery_d = NOW() WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id = %d]])
            :format(w, d, o))
         local amount = con:query_row(([[SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id = %d]])
            :format(w, d, o))
         con:query(([[UPDATE customer SET c_balance = c_balance + %s, c_delivery_cnt = c_delivery_cnt + 1
            WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d]]):format(amount, w, d, tonumber(c)))
      end
   end
   con:query("COMMIT")
end

local function stock_level(w)
   local d, threshold = uniform(1, DISTRICTS), uniform(10, 20)
   con:query("BEGIN")
   local next_order = tonumber(con:query_row(([[SELECT d_next_o_id FROM district WHERE d_w_id = %d AND d_id = %d]]):format(w, d)))
   con:query_row(([[SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id < %d
      AND ol_o_id >= %d AND s_w_id = %d AND s_i_id = ol_i_id AND s_quantity < %d]])
      :format(w, d, next_order, next_order - 20, w, threshold))
   con:query("COMMIT")
end

function event()
   local w, kind = uniform(1, sysbench.opt.warehouses), uniform(1, 23)
   if kind <= 10 then
      new_order(w)
   elseif kind <= 20 then
      payment(w)
   elseif kind == 21 then
      order_status(w)
   elseif kind == 22 then
      delivery(w)
   else
      stock_level(w)
   end
end

-- A deadlock or a lock wait rolls back and starts the transaction again.
function sysbench.hooks.sql_error_ignorable(e)
   if e.sql_errno == 1213 or e.sql_errno == 1205 or e.sql_errno == 1020 then
      con:query("ROLLBACK")
      return true
   end
end
