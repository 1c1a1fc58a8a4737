-- The words of the command line.
local native = ...

sysbench.cmdline = {
   ARG_NULL = 0, ARG_BOOL = 1, ARG_INT = 2, ARG_SIZE = 3, ARG_DOUBLE = 4, ARG_STRING = 5, ARG_LIST = 6, ARG_FILE = 7,
   ARG_MAX = 8, PARALLEL_COMMAND = true,
   argv = native.argv, command = native.command, script_path = native.script_path,
}
if native.is_lazy then native.lazy(sysbench.cmdline, "cmdline") end
