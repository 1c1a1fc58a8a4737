//! Files below loop devices: a file with holes promises space that the file system which holds it may no longer have.

use serde_json::Value;

use crate::block;
use crate::mounts::Mount;
use crate::parse::number;
use crate::readings::Readings;
use crate::source::{Missing, Read, Source};

/// Devices between a file system and the loop device below it at most.
const DEEPEST: usize = 16;

/// Puts what a file system rests on, where that is a file.
pub(super) fn read(id: &dyn Fn(&str) -> String, source: &Source, mount: &Read<Mount>, readings: &Readings) {
    let found = mount.as_ref().map_err(Clone::clone).and_then(|mount| Backing::of(source, mount));
    let put = |name: &str, of: fn(Backing) -> Value| {
        readings.put(&id(name), "/sys/class/block/*/loop", found.clone().map(of));
    };
    put("backing_file", |backing| backing.file.into());
    put("backing_promised_bytes", |backing| backing.promised_bytes.into());
    put("backing_available_bytes", |backing| backing.available_bytes.into());
}

/// The file of a loop device.
#[derive(Debug, Clone, PartialEq)]
struct Backing {
    file: String,
    /// Bytes that the device may still take of the file system that holds the file.
    promised_bytes: u64,
    /// Bytes that are free there.
    available_bytes: u64,
}

impl Backing {
    fn of(source: &Source, mount: &Mount) -> Read<Self> {
        let name = loop_below(source, mount)?;
        let file = source.read(&format!("{}/loop/backing_file", block::folder(&name)))?;
        let size = format!("{}/size", block::folder(&name));
        let sectors: u64 = number(&source.read(&size)?, &size)?;
        let bytes = sectors.saturating_mul(512);
        let at = source.stat(&file)?;
        // The path is that of the mounts of whoever attached it, and may lead to another file here.
        if at.size_bytes < bytes {
            return Err(Missing::Error(format!(
                "{file} is smaller than the device {name} that it is the file of"
            )));
        }
        let available_bytes = source.space(&file)?.available_bytes;
        Ok(Self { file, promised_bytes: bytes.saturating_sub(at.allocated_bytes), available_bytes })
    }
}

/// The first loop device below a file system.
fn loop_below(source: &Source, mount: &Mount) -> Read<String> {
    let none = || Missing::Absent(format!("{} lies on no loop device", mount.point));
    let mut name = match mount.device.0 {
        0 => return Err(none()),
        _ => block::name_of(source, mount.device)?,
    };
    for _ in 0..DEEPEST {
        if source.exists(&format!("{}/loop/backing_file", block::folder(&name))) {
            return Ok(name);
        }
        name = block::below(source, &name)?.into_iter().next().ok_or_else(none)?;
    }
    Err(none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    #[test]
    fn the_loop_device_below_a_mapped_one_is_found() {
        let tree = Tree::of(&[
            ("sys/class/block/dm-0/slaves/loop3", ""),
            ("sys/class/block/loop3/loop/backing_file", "/srv/img/data.img\n"),
            ("sys/class/block/loop3/size", "2048\n"),
            ("sys/class/block/vda/size", "2048\n"),
            ("srv/img/data.img", "short"),
        ]);
        for (numbers, name) in [("254:0", "dm-0"), ("252:0", "vda")] {
            tree.link(&format!("sys/dev/block/{numbers}"), &format!("../../devices/virtual/block/{name}"));
        }
        let source = tree.source();
        let mount = |device: (u32, u32)| Mount {
            id: 1,
            device,
            root: "/".into(),
            point: "/data".into(),
            options: vec![],
            super_options: vec![],
            kind: "ext4".into(),
            from: "/dev/x".into(),
        };
        assert_eq!(loop_below(&source, &mount((254, 0))), Ok("loop3".to_owned()));
        assert!(matches!(loop_below(&source, &mount((252, 0))), Err(Missing::Absent(_))));
        assert!(matches!(loop_below(&source, &mount((0, 30))), Err(Missing::Absent(_))));
        assert!(matches!(Backing::of(&source, &mount((254, 0))), Err(Missing::Error(_))));
    }
}
