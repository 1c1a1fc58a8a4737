//! The threads of the test.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mydyno_linux::calls::aio::{Ended, Queue};
use mydyno_linux::calls::mapping::Mapping;
use mydyno_stats::rng::Rng;

use super::files::{Files, cannot, check_block, fill_block, name};
use super::plan::{Course, Mode, Plan, Request};
use crate::sysbench::engine::Engine;
use crate::sysbench::log::Log;
use crate::sysbench::lua::{Numbers, key_options};
use crate::sysbench::options::Options;
use crate::sysbench::runner::Worker;
use crate::sysbench::stats::Count;
use crate::sysbench::tests::events::run_events;

/// `--file-io-mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Sync,
    /// So many requests of a thread under way.
    Async(usize),
    Mapped,
}

/// State that the threads of the test share.
pub(super) struct Shared {
    pub(super) plan: Plan,
    pub(super) files: Files,
    pub(super) way: Way,
    pub(super) events: u64,
    pub(super) validate: bool,
    pub(super) fsync_each: bool,
    pub(super) fsync_end: bool,
    data_only: bool,
    keys: Numbers,
    course: Mutex<Course>,
    open: OnceLock<Vec<File>>,
    mapped: OnceLock<Vec<Mapping>>,
    read: AtomicU64,
    written: AtomicU64,
    /// Bytes that were read and written at the last report that starts all counters again.
    pub(super) last_report: Mutex<[u64; 2]>,
    /// Threads that still work; the last one syncs the files.
    at_work: AtomicUsize,
}

impl Shared {
    pub(super) fn new(
        plan: Plan,
        files: Files,
        way: Way,
        options: &Options,
        data_only: bool,
        threads: usize,
    ) -> Self {
        let kind = options.text("rand-type").unwrap_or("special");
        let bytes = plan.bytes.saturating_mul(plan.files as u64);
        Self {
            keys: Numbers::new(&key_options(options, kind), bytes),
            events: u64::try_from(options.int("events")).unwrap_or(0),
            validate: options.is_on("validate"),
            fsync_each: options.is_on("file-fsync-all"),
            fsync_end: options.is_on("file-fsync-end") && !options.is_on("file-fsync-all"),
            plan,
            files,
            way,
            data_only,
            course: Mutex::default(),
            open: OnceLock::new(),
            mapped: OnceLock::new(),
            read: AtomicU64::new(0),
            written: AtomicU64::new(0),
            last_report: Mutex::default(),
            at_work: AtomicUsize::new(threads),
        }
    }

    /// Bytes that were read and written so far.
    pub(super) fn bytes(&self) -> [u64; 2] {
        [self.read.load(Relaxed), self.written.load(Relaxed)]
    }

    /// Opens the files; `false` after a failure, which is printed.
    pub(super) fn open(&self, log: &Log) -> bool {
        let anew = self.plan.mode == Mode::SeqWr;
        let Some(files) = self.files.open(anew, log) else { return false };
        if self.way == Way::Mapped {
            let map = |(number, file): (usize, &File)| {
                let mapped = file
                    .set_len(self.plan.bytes)
                    .and_then(|()| Mapping::of_file(file, self.plan.bytes as usize));
                mapped.map_err(|error| log.fatal(&cannot("map", number, &error))).ok()
            };
            let Some(mapped) = files.iter().enumerate().map(map).collect::<Option<Vec<_>>>() else {
                return false;
            };
            let _ = self.mapped.set(mapped);
        }
        self.open.set(files).is_ok()
    }

    fn file(&self, number: usize) -> io::Result<&File> {
        self.open.get().and_then(|files| files.get(number)).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn mapping(&self, number: usize) -> Option<&Mapping> {
        self.mapped.get()?.get(number)
    }

    fn sync(&self, number: usize) -> io::Result<()> {
        if let Some(mapping) = self.mapping(number) {
            return mapping.sync();
        }
        let file = self.file(number)?;
        if self.data_only { file.sync_data() } else { file.sync_all() }
    }
}

/// One thread.
pub(super) struct FileWorker {
    thread: usize,
    shared: Arc<Shared>,
    buffer: Mapping,
    /// The content of a block that is written or was read.
    block: Vec<u8>,
    queue: Option<Queue>,
    rng: Rng,
}

impl FileWorker {
    /// `None` after a failure, which is printed.
    pub(super) fn new(engine: &Arc<Engine>, thread: usize, shared: Arc<Shared>) -> Option<Self> {
        let most = (shared.plan.block * shared.plan.merged.max(1)).min(shared.plan.bytes.max(1)) as usize;
        let made = Mapping::anonymous(most, false).and_then(|buffer| {
            let queue = match shared.way {
                Way::Async(depth) => Some(Queue::new(depth, most)?),
                _ => None,
            };
            Ok((buffer, queue))
        });
        match made {
            Ok((buffer, queue)) => {
                let rng = engine.rng(thread as u64);
                Some(Self { thread, shared, buffer, block: Vec::new(), queue, rng })
            }
            Err(error) => {
                engine.log.fatal(&format!("Failed to allocate buffer! {error}"));
                None
            }
        }
    }

    fn perform(&mut self, engine: &Engine, request: Request) -> Result<(), String> {
        match request {
            Request::Sync { file } => {
                self.drain(engine)?;
                self.sync(engine, file)
            }
            Request::Read { file, offset, length } => {
                self.read(engine, file, offset, length).map_err(|error| cannot("read", file, &error))?;
                if !self.shared.validate || self.queue.is_some() {
                    return Ok(());
                }
                match check_block(&self.block, offset) {
                    None => Ok(()),
                    Some(lines) => {
                        lines.iter().for_each(|line| engine.log.fatal(line));
                        Err(format!("Validation failed on file {file}, block offset {offset}, exiting..."))
                    }
                }
            }
            Request::Write { file, offset, length } => {
                self.write(engine, file, offset, length).map_err(|error| cannot("write", file, &error))?;
                if !self.shared.fsync_each {
                    return Ok(());
                }
                self.drain(engine)?;
                self.sync(engine, file)
            }
        }
    }

    fn sync(&self, engine: &Engine, file: usize) -> Result<(), String> {
        self.shared.sync(file).map_err(|error| {
            let name = name(file);
            format!(
                "Failed to fsync file! file: {name} errno = {} ({error})",
                error.raw_os_error().unwrap_or(0)
            )
        })?;
        engine.count(self.thread, Count::Other);
        Ok(())
    }

    fn read(&mut self, engine: &Engine, file: usize, offset: u64, length: usize) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        if let Some(mapping) = shared.mapping(file) {
            self.block.resize(length, 0);
            mapping.read(offset as usize, &mut self.block);
        } else if let Some(queue) = &mut self.queue {
            queue.submit(shared.file(file)?, offset, length, None)?;
            return self.take_ended(engine, 0);
        } else {
            shared.file(file)?.read_exact_at(self.buffer.bytes_mut(length), offset)?;
            if shared.validate {
                self.block.clear();
                self.block.extend_from_slice(self.buffer.bytes(length));
            }
        }
        self.moved(engine, false, length);
        Ok(())
    }

    fn write(&mut self, engine: &Engine, file: usize, offset: u64, length: usize) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        if self.block.len() != length || shared.validate {
            fill_block(&mut self.block, length, offset, shared.validate);
            self.buffer.write(0, &self.block);
        }
        if let Some(mapping) = shared.mapping(file) {
            mapping.write(offset as usize, &self.block);
        } else if let Some(queue) = &mut self.queue {
            queue.submit(shared.file(file)?, offset, length, Some(&self.block))?;
            return self.take_ended(engine, 0);
        } else {
            shared.file(file)?.write_all_at(self.buffer.bytes(length), offset)?;
        }
        self.moved(engine, true, length);
        Ok(())
    }

    fn moved(&self, engine: &Engine, is_write: bool, length: usize) {
        let (count, bytes) = match is_write {
            true => (Count::Write, &self.shared.written),
            false => (Count::Read, &self.shared.read),
        };
        engine.count(self.thread, count);
        bytes.fetch_add(length as u64, Relaxed);
    }

    /// Takes requests that have ended: at least one where the queue is full, all but those under way otherwise.
    fn take_ended(&mut self, engine: &Engine, least: usize) -> io::Result<()> {
        let Some(mut queue) = self.queue.take() else { return Ok(()) };
        let mut failed = None;
        let least = if queue.is_full() { least.max(1) } else { least };
        let waited = queue.wait(least, |Ended { result, length, is_write }| {
            if result == length as i64 {
                self.moved(engine, is_write, length);
            } else if result < 0 {
                failed = Some(io::Error::from_raw_os_error(-result as i32));
            } else {
                failed = Some(io::ErrorKind::UnexpectedEof.into());
            }
        });
        self.queue = Some(queue);
        waited?;
        failed.map_or(Ok(()), Err)
    }

    /// Waits for all requests under way.
    fn drain(&mut self, engine: &Engine) -> Result<(), String> {
        while self.queue.as_ref().is_some_and(|queue| !queue.is_idle()) {
            self.take_ended(engine, 1).map_err(|error| format!("asynchronous I/O failed: {error}"))?;
        }
        Ok(())
    }
}

impl Worker for FileWorker {
    fn run(&mut self, engine: &Engine) -> bool {
        let mut failure = None;
        run_events(engine, self.thread, || {
            let request = {
                let mut course = self.shared.course.lock().unwrap_or_else(PoisonError::into_inner);
                course.next(&self.shared.plan, &self.shared.keys, &mut self.rng)
            };
            match self.perform(engine, request) {
                Ok(()) => true,
                Err(text) => {
                    failure = Some(text);
                    false
                }
            }
        });
        let mut ended = failure.map_or(Ok(()), Err).and_then(|()| self.drain(engine));
        let is_last = self.shared.at_work.fetch_sub(1, Relaxed) == 1;
        if ended.is_ok() && is_last && self.shared.fsync_end && self.shared.plan.mode.writes() {
            ended = (0..self.shared.plan.files).try_for_each(|file| self.sync(engine, file));
        }
        ended.map_err(|text| engine.log.fatal(&text)).is_ok()
    }
}
