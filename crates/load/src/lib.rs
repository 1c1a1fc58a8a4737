//! How a server is asked: clock, arrivals, connections, executor, recorders.
