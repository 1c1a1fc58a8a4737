//! Errors after which a transaction is retried.

/// `ER_CHECKREAD`: the row changed since it was read.
const CHECKREAD: u16 = 1020;
/// `ER_LOCK_WAIT_TIMEOUT`: rolls back the statement only, so the transaction must be rolled back before it is tried
/// again.
const LOCK_WAIT_TIMEOUT: u16 = 1205;
/// `ER_LOCK_DEADLOCK`: also what Galera answers when certification fails.
const LOCK_DEADLOCK: u16 = 1213;
/// `ER_TRANSACTION_ROLLBACK_DURING_COMMIT` of group replication.
const ROLLBACK_DURING_COMMIT: u16 = 3101;

/// Whether the server says that the same transaction may succeed when it is sent again.
pub fn is_retryable(code: u16) -> bool {
    matches!(code, CHECKREAD | LOCK_WAIT_TIMEOUT | LOCK_DEADLOCK | ROLLBACK_DURING_COMMIT)
}
