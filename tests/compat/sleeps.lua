require("ffi").cdef("int usleep(unsigned)")
function event() require("ffi").C.usleep(4000000) end
