//! The journal: changes that mydyno has made and not yet restored.
//!
//! A file of JSON lines, appended to under a lock; each line is synced before the change that it announces is made. The
//! file is emptied when no change is in force.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mydyno_linux::calls::files::{reserve, try_lock, unlock};
use mydyno_model::document::rfc3339;
use time::OffsetDateTime;

use crate::change::{Change, Kinds};
use crate::error::JournalError;
use crate::lease::{Lease, Liveness};
use crate::line::{Entry, Line, SCHEMA};
use crate::machine::Machine;
use crate::outcome::{Closing, Outcome};
use crate::replay::{Open, Replay, replay};

/// Time limit for the lock. Another mydyno holds it for the milliseconds of an append.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);

/// Disk space that is reserved with each change, so that it can be restored and closed on a full disk: ending a private
/// server may be what frees space.
const RESERVE_BYTES: u64 = 64 << 10;

/// The journal of one state folder.
#[derive(Debug, Clone)]
pub struct Journal {
    path: PathBuf,
    kinds: Kinds,
}

impl Journal {
    /// The journal in a file, which the first entry creates, with the kinds of change that this program knows.
    pub fn at(path: PathBuf, kinds: Kinds) -> Self {
        Self { path, kinds }
    }

    /// The journal of another state folder, with the same kinds of change.
    pub fn beside(&self, state: &Path) -> Self {
        Self { path: state.join(self.path.file_name().unwrap_or_default()), kinds: self.kinds }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the journal.
    ///
    /// # Errors
    /// It cannot be read, is locked for too long, or a newer mydyno wrote it.
    pub fn read(&self) -> Result<Replay, JournalError> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(replay(&[], self.kinds)),
            Err(e) => return Err(JournalError::io("read", &self.path, e)),
        };
        self.load(&mut *self.lock(file, false)?)
    }

    /// Appends a change, synced, before it is made. Pass the returned number to [`close`](Self::close) once the change
    /// is undone.
    ///
    /// # Errors
    /// The same thing is changed already (by a running command, by one that has ended, or on purpose), or the journal
    /// cannot be written; the change must then not be made.
    pub fn record(&self, lease: &Lease, purpose: &str, change: impl Change) -> Result<u64, JournalError> {
        self.record_boxed(lease, purpose, Box::new(change))
    }

    /// As [`record`](Self::record), for a change of a type that is not known at compile time.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn record_boxed(
        &self,
        lease: &Lease,
        purpose: &str,
        change: Box<dyn Change>,
    ) -> Result<u64, JournalError> {
        let key = change.key();
        let needed = || Ok::<_, JournalError>(Some(change));
        let recorded = self.record_if_needed(lease, purpose, &key, needed)?;
        // The closure above always returns a change.
        Ok(recorded.unwrap_or_default())
    }

    /// As [`record`](Self::record), for a change that depends on the current value: `needed` reads it under the
    /// journal's lock, after the check that no other command holds `key`, and returns `None` when there is nothing to
    /// change.
    ///
    /// # Errors
    /// As [`record`](Self::record), and those of `needed`.
    pub fn record_if_needed<E: From<JournalError>>(
        &self,
        lease: &Lease,
        purpose: &str,
        key: &str,
        needed: impl FnOnce() -> Result<Option<Box<dyn Change>>, E>,
    ) -> Result<Option<u64>, E> {
        self.record_beside(lease, purpose, |open| open.entry.change.key() == key, needed)
    }

    /// As [`record_if_needed`](Self::record_if_needed), for a change that conflicts with several others.
    ///
    /// # Errors
    /// As [`record_if_needed`](Self::record_if_needed).
    pub fn record_beside<E: From<JournalError>>(
        &self,
        lease: &Lease,
        purpose: &str,
        in_the_way: impl Fn(&Open) -> bool,
        needed: impl FnOnce() -> Result<Option<Box<dyn Change>>, E>,
    ) -> Result<Option<u64>, E> {
        self.update(|replay| {
            if let Some(open) = replay.open.iter().find(|open| in_the_way(open)) {
                return Err(refusal(open, lease.machine())?.into());
            }
            let Some(change) = needed()? else { return Ok((None, vec![])) };
            let id = fresh_id(replay);
            tracing::debug!(id, purpose, what = ?change.what(), "journal entry");
            let entry = Entry {
                id,
                purpose: purpose.to_owned(),
                was: change.was(),
                now: change.now(),
                change,
                place: lease.machine().place().clone(),
                lease: lease.identity().clone(),
                at: now(),
            };
            let stored = entry.stored().map_err(|e| JournalError::io("write", &self.path, e.into()))?;
            Ok((Some(id), vec![Line::Change(Box::new(stored))]))
        })
    }

    /// Records the values that other settings got through a change.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn note_along(&self, id: u64, values: Vec<(String, String)>) -> Result<(), JournalError> {
        self.append_about(&[id], Line::Along { id, values, at: now() })
    }

    /// Marks changes as kept: they stay until the user runs `until`.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn keep(&self, ids: &[u64], until: &str) -> Result<(), JournalError> {
        self.append_about(ids, Line::Kept { ids: ids.to_vec(), until: until.to_owned(), at: now() })
    }

    /// Makes this command the owner of the changes that `wanted` chooses, all or none, and returns them, oldest first.
    ///
    /// # Errors
    /// A running command owns one of them, or the journal cannot be written.
    pub fn take_over(
        &self,
        lease: &Lease,
        wanted: impl Fn(&Open) -> bool,
    ) -> Result<Vec<Open>, JournalError> {
        self.take(lease, wanted, true)
    }

    /// As [`take_over`](Self::take_over), but also from running commands: the caller knows by other means, as by a
    /// lock, that they no longer need these changes.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn take_from_all(
        &self,
        lease: &Lease,
        wanted: impl Fn(&Open) -> bool,
    ) -> Result<Vec<Open>, JournalError> {
        self.take(lease, wanted, false)
    }

    fn take(
        &self,
        lease: &Lease,
        wanted: impl Fn(&Open) -> bool,
        from_dead_ones_only: bool,
    ) -> Result<Vec<Open>, JournalError> {
        self.update(|replay| {
            let mut taken: Vec<Open> = replay.open.iter().filter(|open| wanted(open)).cloned().collect();
            for open in &taken {
                let ours = open.lease == *lease.identity();
                if from_dead_ones_only
                    && open.kept_until.is_none()
                    && !ours
                    && open.lease.liveness(lease.machine())? == Liveness::Alive
                {
                    return Err(refusal(open, lease.machine())?);
                }
            }
            let ids: Vec<u64> = taken.iter().map(|open| open.entry.id).collect();
            for open in &mut taken {
                open.lease = lease.identity().clone();
                open.kept_until = None;
            }
            let lines = if ids.is_empty() {
                vec![]
            } else {
                vec![Line::Taken { ids, lease: lease.identity().clone(), at: now() }]
            };
            Ok((taken, lines))
        })
    }

    /// Records that a change is no longer in force. The file is emptied when it was the last one.
    ///
    /// # Errors
    /// The journal cannot be written; the change stays listed, and `host restore` finds nothing left to do.
    pub fn close(&self, id: u64, how: Closing, why: &str) -> Result<(), JournalError> {
        tracing::debug!(id, ?how, why, "journal entry closed");
        self.append_about(&[id], Line::Closed { id, how, why: why.to_owned(), at: now() })
    }

    /// Keeps every other use of this journal waiting until this process ends, if no change is in force that `ours`
    /// chooses. Gives whether that is so. A process that ends while other threads of it still use the journal leaves
    /// no half of their work in the file.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn seal(&self, ours: impl Fn(&Open) -> bool) -> Result<bool, JournalError> {
        let file = match OpenOptions::new().read(true).write(true).open(&self.path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(true),
            Err(e) => return Err(JournalError::io("open", &self.path, e)),
        };
        let mut file = self.lock(file, true)?;
        let sealed = !self.load(&mut file)?.open.iter().any(ours);
        if sealed {
            std::mem::forget(file);
        }
        Ok(sealed)
    }

    /// Empties a journal that contains NUL bytes only, so that lost changes can be recorded again.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn empty_if_lost(&self) -> Result<bool, JournalError> {
        if !self.read()?.only_nul {
            return Ok(false);
        }
        let io = |action| move |e| JournalError::io(action, &self.path, e);
        let file = OpenOptions::new().read(true).append(true).open(&self.path).map_err(io("open"))?;
        let mut file = self.lock(file, true)?;
        if !self.load(&mut file)?.only_nul {
            return Ok(false);
        }
        file.set_len(0).and_then(|()| file.sync_all()).map_err(io("empty"))?;
        Ok(true)
    }

    /// Closes the entry of a change with the outcome of its restore; after a failed restore it stays open.
    ///
    /// # Errors
    /// As [`close`](Self::close).
    pub fn close_with(&self, id: u64, outcome: &Outcome) -> Result<(), JournalError> {
        match outcome.closing() {
            Some(how) => self.close(id, how, &outcome.why),
            None => Ok(()),
        }
    }

    /// Appends a line about changes, if one of them is in force: two threads that restore the same change both close it.
    fn append_about(&self, ids: &[u64], line: Line) -> Result<(), JournalError> {
        self.update(|replay| {
            let in_force = replay.open.iter().any(|open| ids.contains(&open.entry.id));
            Ok(((), in_force.then_some(line).into_iter().collect()))
        })
    }

    /// Reads, decides and appends under one exclusive lock.
    fn update<T, E: From<JournalError>>(
        &self,
        decide: impl FnOnce(&Replay) -> Result<(T, Vec<Line>), E>,
    ) -> Result<T, E> {
        let io = |action| move |e| JournalError::io(action, &self.path, e);
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&self.path)
            .map_err(io("open"))?;
        let mut file = self.lock(file, true)?;
        let before = self.load(&mut file)?;
        let (answer, lines) = decide(&before)?;
        if before.only_nul && !lines.is_empty() {
            return match lines.iter().any(|line| matches!(line, Line::Change(_))) {
                true => Err(JournalError::Lost { path: self.path.clone() }.into()),
                // There is no known entry to close or keep, and the damage must stay visible.
                false => Ok(answer),
            };
        }
        let length = file.metadata().map_err(io("read"))?.len();
        if lines.is_empty() {
            // The command that closed the last entry was killed before it emptied the file.
            if length > 0 && before.open.is_empty() && before.damaged_lines.is_empty() {
                file.set_len(0).and_then(|()| file.sync_all()).map_err(io("empty"))?;
            }
            return Ok(answer);
        }
        if length != before.sound_bytes {
            // A torn last line announced a change that was never made; it is cut off so that the next line starts at a
            // line's beginning.
            file.set_len(before.sound_bytes).map_err(io("write"))?;
        }
        if lines.iter().any(|line| matches!(line, Line::Change(_))) {
            reserve(&file.0, before.sound_bytes + RESERVE_BYTES).map_err(io("write"))?;
        }
        let fresh = before.sound_bytes == 0;
        if let Err(e) = append(&mut file, &lines, fresh) {
            // A partial line (the disk is full) must not remain as if it announced a change.
            let _ = file.set_len(before.sound_bytes);
            return Err(io("write")(e).into());
        }
        if fresh {
            self.sync_folder()?;
        }
        if lines.iter().any(|line| matches!(line, Line::Closed { .. })) {
            let after = self.load(&mut file)?;
            if after.open.is_empty() && after.damaged_lines.is_empty() {
                file.set_len(0).and_then(|()| file.sync_all()).map_err(io("empty"))?;
            }
        }
        Ok(answer)
    }

    fn load(&self, file: &mut File) -> Result<Replay, JournalError> {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0))
            .and_then(|_| file.read_to_end(&mut bytes))
            .map_err(|e| JournalError::io("read", &self.path, e))?;
        let replay = replay(&bytes, self.kinds);
        match replay.other_form {
            Some(found) => Err(JournalError::Newer { path: self.path.clone(), found }),
            None => Ok(replay),
        }
    }

    fn lock(&self, file: File, exclusive: bool) -> Result<Locked, JournalError> {
        let deadline = Instant::now() + LOCK_PATIENCE;
        loop {
            if try_lock(&file, exclusive).map_err(|e| JournalError::io("lock", &self.path, e))? {
                return Ok(Locked(file));
            }
            if Instant::now() >= deadline {
                let waited_s = LOCK_PATIENCE.as_secs();
                return Err(JournalError::Busy { path: self.path.clone(), waited_s });
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// A new file survives a power cut only once its folder is synced.
    fn sync_folder(&self) -> Result<(), JournalError> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        File::open(folder).and_then(|f| f.sync_all()).map_err(|e| JournalError::io("sync", folder, e))
    }
}

/// The journal's file while it is locked.
///
/// A flock(2) lock lasts until the last descriptor is closed, and a child that another thread forks has a copy until it
/// executes its program, which a child that waits for its journal entry does only after the next write. So the lock is
/// released explicitly, which applies to all copies.
#[derive(Debug)]
struct Locked(File);

impl Deref for Locked {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.0
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        unlock(&self.0);
    }
}

/// A number that no entry had before, not even in a file that was emptied since: a process with an old number must not
/// close a new entry. Microseconds since 1970, because an emptied file leaves no counter.
fn fresh_id(replay: &Replay) -> u64 {
    let micros = OffsetDateTime::now_utc().unix_timestamp_nanos() / 1000;
    replay.next_id.max(u64::try_from(micros).unwrap_or_default())
}

fn append(file: &mut File, lines: &[Line], fresh: bool) -> io::Result<()> {
    let header = fresh.then(|| Line::Journal { schema: SCHEMA.to_owned() });
    let mut bytes = Vec::new();
    for line in header.iter().chain(lines) {
        serde_json::to_writer(&mut bytes, line)?;
        bytes.push(b'\n');
    }
    file.write_all(&bytes)?;
    file.sync_all()
}

/// The reason why a change in force conflicts with a new one.
///
/// # Errors
/// `/proc` cannot be read.
pub fn refusal(open: &Open, machine: &Machine) -> Result<JournalError, JournalError> {
    let what = open.entry.change.what();
    if let Some(until) = &open.kept_until {
        return Ok(JournalError::Kept { what, until: until.clone() });
    }
    let (pid, command) = (open.lease.process.pid, open.lease.command.clone());
    Ok(match open.lease.liveness(machine)? {
        Liveness::Alive => JournalError::Held { what, pid, command },
        Liveness::Dead => JournalError::Abandoned { what, pid, command },
        Liveness::Unseen => {
            let command = format!("{command} on {}", open.lease.process.place.host);
            JournalError::Held { what, pid, command }
        }
    })
}

fn now() -> String {
    rfc3339(OffsetDateTime::now_utc())
}
