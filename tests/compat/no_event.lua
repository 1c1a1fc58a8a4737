function prepare() print("p") end
