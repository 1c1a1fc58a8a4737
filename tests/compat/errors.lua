function event() error("boom") end
function help() print("own help") end
function prepare() foo.bar() end
sysbench.cmdline.commands = {
   own = {function() print("own", sysbench.tid, sysbench.opt.threads) end},
   par = {function() if sysbench.tid == 1 then print("par") end end, sysbench.cmdline.PARALLEL_COMMAND},
   bad = {function() return false end},
   err = {function() error("x") end},
}
