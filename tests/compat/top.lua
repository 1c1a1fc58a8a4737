error("top")
