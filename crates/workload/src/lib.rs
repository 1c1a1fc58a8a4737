//! What is asked of a server: schemas, data, generators, transactions.
