function set_vars()
   oltp_table_size = tonumber(oltp_table_size or 100)
   oltp_tables_count = tonumber(oltp_tables_count or 1)
end
function prepare()
   set_vars()
   db_connect()
   for i = 1, oltp_tables_count do
      print("creating " .. i .. " " .. db_driver .. " " .. mysql_table_engine)
      db_query("CREATE TABLE old" .. i .. " (id INT PRIMARY KEY, k INT, c CHAR(20)) ENGINE=" .. mysql_table_engine)
      db_bulk_insert_init("INSERT INTO old" .. i .. " VALUES")
      for j = 1, oltp_table_size do
         db_bulk_insert_next("(" .. j .. "," .. sb_rand(1, oltp_table_size) .. ",'" .. sb_rand_str("###-@@@") .. "')")
      end
      db_bulk_insert_done()
   end
end
function cleanup()
   set_vars()
   for i = 1, oltp_tables_count do db_query("DROP TABLE old" .. i) end
end
