-- A script for 0.5: the folder by pathtest, its helpers by dofile, options as globals.
pathtest = string.match(test, "(.*/)") or ""
dofile(pathtest .. "legacy_shop_common.lua")

function prepare()
   set_vars()
   db_connect()
   for i = 1, shop_tables do create_shop(i) end
   db_disconnect()
end

function cleanup()
   set_vars()
   db_connect()
   for i = 1, shop_tables do db_query("DROP TABLE IF EXISTS shop" .. i) end
end

function thread_init(thread_id)
   set_vars()
   db_connect()
end

function event(thread_id)
   local table_name = "shop" .. sb_rand_uniform(1, shop_tables)
   local i, rs
   db_query(begin_query)
   for i = 1, shop_reads do
      rs = db_query("SELECT stock FROM " .. table_name .. " WHERE id=" .. sb_rand(1, shop_size))
   end
   if not shop_read_only then
      db_query("UPDATE " .. table_name .. " SET stock=stock-1, note='" .. sb_rand_str("##@@##-###") .. "' WHERE id=" .. sb_rand_uniform(1, shop_size))
   end
   db_query(commit_query)
end
