function create_shop(number)
   local i
   db_query("CREATE TABLE shop" .. number .. " (id INT NOT NULL PRIMARY KEY, stock INT NOT NULL, note VARCHAR(40)) ENGINE=" .. mysql_table_engine)
   db_bulk_insert_init("INSERT INTO shop" .. number .. " VALUES")
   for i = 1, shop_size do
      db_bulk_insert_next("(" .. i .. "," .. sb_rand_uniform(10, 1000) .. ",'" .. sb_rand_str("###-@@@") .. "')")
   end
   db_bulk_insert_done()
   print("shop" .. number .. " has " .. shop_size .. " rows")
end

function set_vars()
   shop_tables = tonumber(shop_tables) or 2
   shop_size = tonumber(shop_size) or 200
   shop_reads = tonumber(shop_reads) or 4
   shop_read_only = shop_read_only == 'on'
   begin_query = (mysql_table_engine == "myisam") and "LOCK TABLES shop1 WRITE, shop2 WRITE" or "BEGIN"
   commit_query = (mysql_table_engine == "myisam") and "UNLOCK TABLES" or "COMMIT"
end
