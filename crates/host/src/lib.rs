//! Settings of a Linux host, each behind the journal that puts it back.
