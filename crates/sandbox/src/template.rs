//! Templates of data directories: initialised once per server program and set of options, then copied.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use mydyno_host::folder::MarkedFolder;
use mydyno_host::journal::Closing;
use mydyno_host::{data_directory, effective_uid, folder, room};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::cache::{self, InUse, RECIPE};
use crate::copy::{forget_zeros_of, occupied_bytes, shares_blocks, sync_folder};
use crate::error::SandboxError;
use crate::find::Install;
use crate::init;
use crate::quirks::{When, options};
use crate::settings::Setting;
use crate::site::{Progress, Site};

/// Identity of a template; another build of the program or other options make another template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Recipe {
    /// Incremented when the way of making templates changes.
    form: u32,
    program: PathBuf,
    program_bytes: u64,
    program_modified_ns: i128,
    version: String,
    options: Vec<String>,
}

/// A finished template.
#[derive(Debug)]
pub(crate) struct Template {
    /// Its data directory.
    pub(crate) data: PathBuf,
    /// Bytes that it occupies on disk.
    pub(crate) bytes: u64,
    /// Prevents its removal while it is copied.
    _in_use: InUse,
}

const FORM: u32 = 2;
/// Space for making one: data directories of the known series occupy 20 to 200 MB, and making one needs that much
/// again.
const ROOM_TO_BUILD: u64 = 400 << 20;

/// The template for a server program and settings, which is made if it does not exist.
pub(crate) fn obtain(
    site: &Site,
    install: &Install,
    settings: &[Setting],
    progress: &mut dyn FnMut(Progress),
) -> Result<Template, SandboxError> {
    let shaping: Vec<Setting> = settings.iter().filter(|s| s.shapes_datadir()).cloned().collect();
    let recipe = Recipe::of(install, &shaping)?;
    let templates = site.cache.join("templates");
    data_directory::check_outside(&templates, "MYDYNO_CACHE")?;
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&templates)
        .map_err(|e| SandboxError::io("create", &templates, e))?;
    let templates = fs::canonicalize(&templates).map_err(|e| SandboxError::io("open", &templates, e))?;
    check_owner(&templates)?;
    let path = templates.join(recipe.name());
    if let Some(template) = recipe.find(&path) {
        return Ok(template);
    }
    progress(Progress::BuildingTemplate);
    let ours = |work: &Path| journalled(site, work);
    cache::tidy(&templates, &|old| recipe.replaces(old), &ours);
    check_room(&templates, ROOM_TO_BUILD, "MYDYNO_CACHE")?;
    build(site, install, &shaping, &recipe, &templates, &path)?;
    recipe.find(&path).ok_or_else(|| SandboxError::Basedir {
        path: path.clone(),
        problem: "the template was removed while it was made".to_owned(),
    })
}

fn build(
    site: &Site,
    install: &Install,
    shaping: &[Setting],
    recipe: &Recipe,
    templates: &Path,
    path: &Path,
) -> Result<(), SandboxError> {
    let purpose = format!("template {}", recipe.name());
    // Threads of one process make templates too.
    static MADE: AtomicU64 = AtomicU64::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let work = templates.join(format!(".new-{}-{number}-{}", std::process::id(), recipe.name()));
    let id = folder::create(site.journal, site.lease, &purpose, &work)?;
    let made = init::make(site, install, shaping, &work, &purpose).and_then(|()| {
        let bytes = serde_json::to_vec_pretty(recipe).unwrap_or_default();
        fs::write(work.join(RECIPE), bytes).map_err(|e| SandboxError::io("write", work.join(RECIPE), e))?;
        // Copies that share blocks read nothing.
        if !shares_blocks(&work, templates) {
            forget_zeros_of(&work);
        }
        // A template outlives power cuts, so its files must be on disk before its name is.
        sync_folder(&work).map_err(|e| SandboxError::io("sync", &work, e))
    });
    match made {
        Ok(()) => {}
        Err(error) => return Err(site.undo_after(error, &purpose)),
    }
    match fs::rename(&work, path) {
        Ok(()) => {
            // The new name survives a power cut once its folder is synced; until then the journal has an entry for the
            // old one.
            File::open(templates)
                .and_then(|f| f.sync_all())
                .map_err(|e| SandboxError::io("sync", templates, e))?;
            site.journal.close(id, Closing::Released, "it became a template")?;
            Ok(())
        }
        // Another command has finished the same template meanwhile, or remains of one have its name.
        Err(_) if recipe.find(path).is_some() => site.undo_own(&purpose),
        Err(e) => Err(site.undo_after(SandboxError::io("create", path, e), &purpose)),
    }
}

impl Recipe {
    fn of(install: &Install, shaping: &[Setting]) -> Result<Self, SandboxError> {
        let program = &install.program;
        let meta = fs::metadata(program).map_err(|e| SandboxError::io("read", program, e))?;
        let quirks = options(&install.engine, When::Init).map(str::to_owned);
        Ok(Self {
            form: FORM,
            program: program.clone(),
            program_bytes: meta.size(),
            program_modified_ns: i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec()),
            version: install.engine.text.clone(),
            options: quirks.chain(shaping.iter().map(Setting::option)).collect(),
        })
    }

    /// As in `10.11.19-MariaDB-0-deb12u1-0f3c…`.
    fn name(&self) -> String {
        let text = serde_json::to_vec(self).unwrap_or_default();
        let digest: String = Sha256::digest(text).iter().take(8).map(|b| format!("{b:02x}")).collect();
        let version: String = self
            .version
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' })
            .collect();
        format!("{version}-{digest}")
    }

    /// A finished template with this recipe.
    fn find(&self, path: &Path) -> Option<Template> {
        let in_use = InUse::mark(&path.join(RECIPE))?;
        (read(path)? == *self).then_some(())?;
        let data = path.join("data");
        Some(Template { bytes: occupied_bytes(&data).ok()?, data, _in_use: in_use })
    }

    /// Whether a template is of an earlier version of the same program, which no start will use again.
    fn replaces(&self, template: &Path) -> bool {
        read(template).is_some_and(|old| {
            old.program == self.program
                && (old.form, old.program_bytes, old.program_modified_ns)
                    != (self.form, self.program_bytes, self.program_modified_ns)
        })
    }
}

fn read(template: &Path) -> Option<Recipe> {
    serde_json::from_slice(&fs::read(template.join(RECIPE)).ok()?).ok()
}

/// Whether the journal has a folder: it is then being made, or `host restore` removes it. `true` where the journal
/// cannot be read.
fn journalled(site: &Site, folder: &Path) -> bool {
    site.journal.read().map_or(true, |replay| {
        replay.open.iter().any(|open| open.as_kind::<MarkedFolder>().is_some_and(|f| f.path == folder))
    })
}

/// Checks that only this user can write to the templates: servers execute their content.
pub(crate) fn check_owner(templates: &Path) -> Result<(), SandboxError> {
    let meta = fs::metadata(templates).map_err(|e| SandboxError::io("open", templates, e))?;
    if meta.uid() == effective_uid() && meta.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(SandboxError::CacheFolder { path: templates.to_owned() })
}

/// Checks that a file system has space before anything is written to it.
pub(crate) fn check_room(path: &Path, needed: u64, variable: &'static str) -> Result<(), SandboxError> {
    let free = room::free_bytes(path)?;
    if free >= needed {
        return Ok(());
    }
    let show = |bytes: u64| mydyno_model::units::show_bytes(bytes as f64);
    Err(SandboxError::NoRoom { path: path.to_owned(), free: show(free), needed: show(needed), variable })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe() -> Recipe {
        Recipe {
            form: FORM,
            program: "/usr/sbin/mariadbd".into(),
            program_bytes: 1,
            program_modified_ns: 2,
            version: "10.11.19-MariaDB-0+deb12u1".into(),
            options: vec!["--bootstrap".into()],
        }
    }

    #[test]
    fn a_new_build_or_other_options_make_another_template() {
        let name = recipe().name();
        assert!(name.starts_with("10.11.19-MariaDB-0-deb12u1-"), "{name}");
        for other in [
            Recipe { program_modified_ns: 3, ..recipe() },
            Recipe { program_bytes: 3, ..recipe() },
            Recipe { options: vec!["--bootstrap".into(), "--innodb_page_size=8K".into()], ..recipe() },
        ] {
            assert_ne!(other.name(), name);
        }
    }

    #[test]
    fn templates_of_an_upgraded_program_are_removed_and_others_kept() {
        let temp = tempfile::tempdir().unwrap();
        let keep = |recipe: &Recipe| {
            let path = temp.path().join(recipe.name());
            fs::create_dir_all(path.join("data")).unwrap();
            fs::write(path.join(RECIPE), serde_json::to_vec(recipe).unwrap()).unwrap();
            path
        };
        let old = keep(&Recipe { program_modified_ns: 1, ..recipe() });
        let same = keep(&Recipe { options: vec!["--x".into()], ..recipe() });
        let other = keep(&Recipe { program: "/opt/mysqld".into(), program_modified_ns: 1, ..recipe() });
        let recipe = recipe();
        cache::tidy(temp.path(), &|old| recipe.replaces(old), &|_| false);
        assert_eq!((old.exists(), same.exists(), other.exists()), (false, true, true));
    }

    #[test]
    fn a_cache_that_others_can_write_to_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let temp = tempfile::tempdir().unwrap();
        check_owner(temp.path()).unwrap();
        fs::set_permissions(temp.path(), fs::Permissions::from_mode(0o770)).unwrap();
        let error = check_owner(temp.path()).unwrap_err().to_string();
        assert!(error.contains("MYDYNO_CACHE"), "{error}");
    }

    #[test]
    fn too_little_room_is_said_before_anything_is_written() {
        let temp = tempfile::tempdir().unwrap();
        assert!(check_room(temp.path(), 1, "MYDYNO_CACHE").is_ok());
        let error = check_room(temp.path(), u64::MAX, "MYDYNO_CACHE").unwrap_err().to_string();
        assert!(error.contains("free") && error.contains("MYDYNO_CACHE"), "{error}");
    }
}
