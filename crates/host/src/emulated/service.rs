//! The process that serves an emulated disk: a FUSE file system with two files, `disk` and `control`.
//!
//! The kernel's requests wait in an [`Array`] of drives until the time model releases them. The process never accesses its own
//! mount, and all of its memory is locked, so that swapping to the disk cannot deadlock.

use std::ffi::OsStr;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyOpen, ReplyWrite, Request, TimeOrNow, WriteFlags,
};

use mydyno_linux::calls;

use super::array::Array;
use super::mechanism::{Answer, Model, Work};
use super::store::SECTOR;
use super::{DiskCommand, State};

/// How long the kernel may cache names and attributes, which never change.
const REMEMBERED: Duration = Duration::from_secs(3600);
const DISK: INodeNo = INodeNo(2);
const CONTROL: INodeNo = INodeNo(3);
/// Background requests before the kernel throttles. The default, twelve, would keep the drive's queue short.
const MOST_REQUESTS: u16 = 1024;
/// `FUSE_DEFAULT_MAX_PAGES_LIMIT` of fs/fuse/fuse_i.h: 256 pages.
const MOST_BYTES: u32 = 1 << 20;

/// A request that waits for an answer.
#[derive(Debug)]
enum Waiter {
    /// This many bytes from an offset: requests need not be whole sectors.
    Read {
        reply: ReplyData,
        skip: usize,
        length: usize,
    },
    Write {
        reply: ReplyWrite,
        length: u32,
    },
    Flush(ReplyEmpty),
}

impl Waiter {
    fn answer(self, answer: Answer) {
        match (self, answer) {
            (Self::Read { reply, skip, length }, Answer::Data(data)) => {
                reply.data(&data[skip..skip + length])
            }
            (Self::Write { reply, length }, Answer::Done) => reply.written(length),
            (Self::Flush(reply), Answer::Done) => reply.ok(),
            (Self::Read { reply, .. }, _) => reply.error(Errno::EIO),
            (Self::Write { reply, .. }, _) => reply.error(Errno::EIO),
            (Self::Flush(reply), _) => reply.error(Errno::EIO),
        }
    }
}

/// A drive with a clock, shared by the thread that receives requests and the one that answers them.
#[derive(Debug)]
pub(super) struct Drive {
    mechanism: Mutex<Array<Waiter>>,
    changed: Condvar,
    began: Instant,
    bytes: u64,
}

impl Drive {
    pub(super) fn new(model: Model) -> Self {
        let bytes = model.drive.bytes;
        Self {
            mechanism: Mutex::new(Array::new(model)),
            changed: Condvar::new(),
            began: Instant::now(),
            bytes,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Array<Waiter>> {
        self.mechanism.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Answers requests when they are due, as long as the process lives.
    pub(super) fn turn(&self) -> ! {
        let mut mechanism = self.lock();
        loop {
            let now_ns = self.now_ns();
            let done = mechanism.advance(now_ns);
            if !done.is_empty() {
                drop(mechanism);
                done.into_iter().for_each(|(waiter, answer)| waiter.answer(answer));
                mechanism = self.lock();
                continue;
            }
            mechanism = match mechanism.next_ns() {
                None => self.changed.wait(mechanism).unwrap_or_else(PoisonError::into_inner),
                Some(next_ns) => {
                    let wait = Duration::from_nanos(next_ns.saturating_sub(now_ns));
                    self.changed.wait_timeout(mechanism, wait).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Executes a command.
    pub(super) fn execute(&self, command: DiskCommand) {
        let mut mechanism = self.lock();
        let done = match command {
            DiskCommand::Cut => mechanism.cut(self.now_ns()),
            DiskCommand::On => {
                mechanism.power_on();
                vec![]
            }
            DiskCommand::Settle => {
                mechanism.settle();
                vec![]
            }
            DiskCommand::SkipDelays | DiskCommand::KeepDelays => {
                mechanism.skip_delays(command == DiskCommand::SkipDelays);
                vec![]
            }
        };
        drop(mechanism);
        done.into_iter().for_each(|(waiter, answer)| waiter.answer(answer));
        self.changed.notify_one();
    }

    /// Sets whether requests have waited beyond their time limit; while they have, requests are served without delays.
    pub(super) fn skip_delays_while_late(&self, late: bool) {
        self.lock().skip_delays_while_late(late);
        self.changed.notify_one();
    }

    /// The age of the oldest request.
    pub(super) fn longest_wait(&self) -> Duration {
        let oldest_ns = self.lock().oldest_ns();
        oldest_ns.map_or(Duration::ZERO, |ns| Duration::from_nanos(self.now_ns().saturating_sub(ns)))
    }

    fn state(&self) -> State {
        let mechanism = self.lock();
        State {
            model: mechanism.model().clone(),
            power: mechanism.has_power(),
            hurries: mechanism.skips_delays(),
            dirty_bytes: mechanism.dirty_bytes(),
            counters: mechanism.counters(),
        }
    }

    fn read(&self, offset: u64, length: usize, reply: ReplyData) {
        let length = length.min(usize::try_from(self.bytes.saturating_sub(offset)).unwrap_or(usize::MAX));
        if length == 0 {
            return reply.data(&[]);
        }
        let (from, whole) = sectors_around(offset, length);
        let skip = (offset - from) as usize;
        let waiter = Waiter::Read { reply, skip, length };
        self.lock().submit(waiter, self.now_ns(), from, Work::Read(whole));
        self.changed.notify_one();
    }

    fn write(&self, offset: u64, data: &[u8], reply: ReplyWrite) {
        if offset + data.len() as u64 > self.bytes {
            return reply.error(Errno::ENOSPC);
        }
        let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let (from, whole) = sectors_around(offset, data.len());
        let mut mechanism = self.lock();
        let data = if whole == data.len() {
            data.to_vec()
        } else {
            // Only programs that write the file directly do so; a block device writes whole sectors.
            let mut around = mechanism.peek(from, whole);
            let skip = (offset - from) as usize;
            around[skip..skip + data.len()].copy_from_slice(data);
            around
        };
        mechanism.submit(Waiter::Write { reply, length }, self.now_ns(), from, Work::Write(data));
        drop(mechanism);
        self.changed.notify_one();
    }

    fn flush(&self, reply: ReplyEmpty) {
        self.lock().submit(Waiter::Flush(reply), self.now_ns(), 0, Work::Flush);
        self.changed.notify_one();
    }
}

fn sectors_around(offset: u64, length: usize) -> (u64, usize) {
    let sector = SECTOR as u64;
    let from = offset / sector * sector;
    let to = (offset + length as u64).next_multiple_of(sector);
    (from, (to - from) as usize)
}

/// The FUSE file system.
#[derive(Debug)]
pub(super) struct Files(pub(super) Arc<Drive>);

impl Files {
    fn attributes(&self, inode: INodeNo) -> Option<FileAttr> {
        let (kind, perm, size) = match inode {
            INodeNo::ROOT => (FileType::Directory, 0o500, 0),
            DISK => (FileType::RegularFile, 0o600, self.0.bytes),
            CONTROL => (FileType::RegularFile, 0o600, 0),
            _ => return None,
        };
        let owner = calls::effective_uid();
        Some(FileAttr {
            ino: inode,
            size,
            blocks: size / SECTOR as u64,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: 1,
            uid: owner,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }
}

impl Filesystem for Files {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let refused = |_| io::Error::other("this kernel's FUSE cannot hold many requests at once");
        config.add_capabilities(InitFlags::FUSE_ASYNC_DIO).map_err(refused)?;
        config.set_max_background(MOST_REQUESTS).map_err(|_| io::Error::other("max_background"))?;
        config.set_max_write(MOST_BYTES).map_err(|_| io::Error::other("max_write"))?;
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let inode = match name.to_str() {
            Some("disk") => DISK,
            Some("control") => CONTROL,
            _ => return reply.error(Errno::ENOENT),
        };
        match self.attributes(inode).filter(|_| parent == INodeNo::ROOT) {
            Some(found) => reply.entry(&REMEMBERED, &found, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode) {
            Some(found) => reply.attr(&REMEMBERED, &found),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<std::time::SystemTime>,
        _: Option<FileHandle>,
        _: Option<std::time::SystemTime>,
        _: Option<std::time::SystemTime>,
        _: Option<std::time::SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        match self.attributes(inode) {
            // The size of a disk is fixed.
            Some(found) if size.is_none_or(|size| size == found.size || inode == CONTROL) => {
                reply.attr(&REMEMBERED, &found);
            }
            _ => reply.error(Errno::EPERM),
        }
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES);
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if inode == DISK {
            return self.0.read(offset, size as usize, reply);
        }
        let text = serde_json::to_string(&self.0.state()).unwrap_or_default();
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(text.len());
        let to = (from + size as usize).min(text.len());
        reply.data(&text.as_bytes()[from..to]);
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        if inode == DISK {
            return self.0.write(offset, data, reply);
        }
        match std::str::from_utf8(data).ok().and_then(|text| DiskCommand::named(text.trim())) {
            Some(command) => {
                self.0.execute(command);
                reply.written(u32::try_from(data.len()).unwrap_or(u32::MAX));
            }
            None => reply.error(Errno::EINVAL),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // Closing a file does not flush a disk.
        reply.ok();
    }

    fn fsync(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        if inode == DISK { self.0.flush(reply) } else { reply.ok() }
    }

    fn readdir(&self, _: &Request, _: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let entries = [
            (INodeNo::ROOT, FileType::Directory, "."),
            (INodeNo::ROOT, FileType::Directory, ".."),
            (DISK, FileType::RegularFile, "disk"),
            (CONTROL, FileType::RegularFile, "control"),
        ];
        for (at, (inode, kind, name)) in (1u64..).zip(entries).skip(usize::try_from(offset).unwrap_or(0)) {
            if reply.add(inode, at, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}
