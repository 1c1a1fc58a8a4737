//! The kinds of change that mydyno makes: one line each.

use mydyno_journal::{Kind, Kinds};

use crate::cgroup::MadeGroup;
use crate::folder::MarkedFolder;
use crate::loops::AttachedLoop;
use crate::mounts::Mounted;
use crate::process::StartedProcess;
use crate::server_variable::ServerVariable;
use crate::setting::ChangedSetting;
use crate::swap::SwapFile;
use crate::task::ChangedTask;
use crate::variable::ChangedVariable;
use crate::zram::ZramSwap;
/// All kinds by their names in the journal. A name is never reused for another kind.
pub const KINDS: Kinds = &[
    Kind::of::<MarkedFolder>("folder"),
    Kind::of::<StartedProcess>("process"),
    Kind::of::<ChangedSetting>("setting"),
    Kind::of::<AttachedLoop>("loop"),
    Kind::of::<Mounted>("mount"),
    Kind::of::<SwapFile>("swap"),
    Kind::of::<ZramSwap>("zram"),
    Kind::of::<MadeGroup>("cgroup"),
    Kind::of::<ChangedTask>("task"),
    Kind::of::<ChangedVariable>("variable"),
    Kind::of::<ServerVariable>("server_variable"),
];
