sysbench.cmdline.options = {
   foo = {"a number", 3}, bar = {"a text", "x"}, c = {"a switch", true}, d = {"nothing"}, e = {"a fraction", 2.5},
   f = {"a size", 10, sysbench.cmdline.ARG_SIZE}, g = {"a list", "a,b", sysbench.cmdline.ARG_LIST},
}
print("at load", sysbench.tid, sysbench.opt, sysbench.version, sysbench.version_string)
print(sysbench.cmdline.command, sysbench.cmdline.script_path, sysbench.cmdline.argv[0], sysbench.cmdline.argv[1])
function event()
   local o = sysbench.opt
   print(o.foo, o.bar, o.c, o.d, o.e, o.f, type(o.g), o.threads, o.mysql_db, o.percentile, o.rand_type)
end
