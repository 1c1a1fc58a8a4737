function event() return 1 end
