//! CPU affinity of a running private server.

use mydyno_host::task::{self, Attribute};
use mydyno_model::server::ServerInfo;

use crate::error::SandboxError;
use crate::folder::{Description, ServerFolder};
use crate::site::Site;

/// Restricts a private server to some CPUs, as in `0-1,3`: writes the journal entry, then sets all its threads. It must
/// be restored before another list is set.
///
/// # Errors
/// The server has ended, or the system refuses.
pub fn confine(site: &Site, server: &ServerInfo, purpose: &str, cpus: &str) -> Result<(), SandboxError> {
    let Some(Description { process, .. }) = ServerFolder::of(site.state, &server.name).load()? else {
        return Err(SandboxError::NoSuchServer { name: server.name.clone(), known: vec![] });
    };
    task::set(site.journal, site.lease, purpose, &process, Attribute::Affinity, cpus)?;
    Ok(())
}
