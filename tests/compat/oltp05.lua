pathtest = string.match(test, "(.*/)") or ""
dofile(pathtest .. "common05.lua")
function thread_init(thread_id)
   set_vars()
   db_connect()
   stmt = db_prepare("SELECT c FROM old1 WHERE id=?")
   params = {1}
   db_bind_param(stmt, params)
end
function event(thread_id)
   db_query("BEGIN")
   params[1] = sb_rand_uniform(1, oltp_table_size)
   rs = db_execute(stmt)
   db_store_results(rs)
   db_free_results(rs)
   rs = db_query("UPDATE old1 SET k=k+1 WHERE id=" .. sb_rand_uniform(1, oltp_table_size))
   db_query("COMMIT")
end
