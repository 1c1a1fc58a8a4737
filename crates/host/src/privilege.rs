//! The capability that mounting, attaching loop devices and swapping need.

use mydyno_journal::Machine;

use crate::error::HostError;
/// Checks that this process has CAP_SYS_ADMIN on the host.
///
/// # Errors
/// It does not, or only in a user namespace.
pub(crate) fn check_admin(machine: &Machine, what: &str) -> Result<(), HostError> {
    const CAP_SYS_ADMIN: u32 = 21;
    if !machine.has_capability(CAP_SYS_ADMIN) {
        return Err(HostError::Missing {
            what: what.to_owned(),
            missing: "this process does not have CAP_SYS_ADMIN".to_owned(),
            remedy: "run as root, in a container with that capability".to_owned(),
        });
    }
    if machine.is_host_user_namespace() {
        return Ok(());
    }
    Err(HostError::Missing {
        what: what.to_owned(),
        missing: "its capabilities hold in a user namespace only (a rootless container)".to_owned(),
        remedy: "run as the host's root".to_owned(),
    })
}
