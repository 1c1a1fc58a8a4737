//! Private servers: found, initialised from templates, started, watched, ended.
