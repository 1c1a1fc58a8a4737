-- A procedure with several results.
function prepare()
   local con = sysbench.sql.driver():connect()
   con:query("DROP PROCEDURE IF EXISTS two_results")
   con:query("CREATE PROCEDURE two_results(IN n INT) BEGIN SELECT n AS first; SELECT n + 1, n + 2; DO 0; END")
end

function cleanup()
   sysbench.sql.driver():connect():query("DROP PROCEDURE IF EXISTS two_results")
end

function thread_init()
   con = sysbench.sql.driver():connect()
end

function event()
   local rs = con:query("CALL two_results(41)")
   local row = rs:fetch_row()
   print(rs.nrows, rs.nfields, row[1])
end
