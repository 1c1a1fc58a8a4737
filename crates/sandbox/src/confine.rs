//! CPUs of a private server that runs.

use mydyno_host::task::{self, Attribute};
use mydyno_model::server::ServerInfo;

use crate::error::SandboxError;
use crate::folder::{Description, ServerFolder};
use crate::site::Site;

/// Lets a private server run on some CPUs only, as in `0-1,3`: journal first, then all its threads. It has to be put back before
/// another list is set.
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
