function event() error("boom") end
function help() print("own help") end
function prepare() foo.bar() end
sysbench.cmdline.commands = {
   own = {function() print("own", sysbench.tid, sysbench.opt.threads) end},
   par = {function() print("par", sysbench.tid % 1) end, sysbench.cmdline.PARALLEL_COMMAND},
   bad = {function() return false end},
   err = {function() error("x") end},
}
