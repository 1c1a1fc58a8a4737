function thread_init() foo.bar() end
function event() end
