//! Tracepoints of the kernel: their number and the places of their fields, from tracefs.

use std::path::Path;

/// Where tracefs is mounted: by systemd at the first place, by older systems inside debugfs.
pub const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Those of [`PLACES`] that can be looked at without a change: the kernel mounts tracefs inside debugfs when somebody looks there.
pub fn places() -> Vec<&'static str> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let is_mounted = |place: &&&str| mounts.lines().any(|line| line.split(' ').nth(4) == Some(**place));
    PLACES[..1].iter().chain(PLACES[1..].iter().filter(is_mounted)).copied().collect()
}

/// A tracepoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracepoint {
    /// The number that `perf_event_open` takes.
    pub id: u64,
    format: String,
}

impl Tracepoint {
    /// The tracepoint of a name as `block/block_rq_issue`; `None` where no tracefs of `places` shows it to this account.
    pub fn find(places: &[impl AsRef<Path>], name: &str) -> Option<Self> {
        places.iter().find_map(|place| {
            let folder = place.as_ref().join("events").join(name);
            let text = |file: &str| std::fs::read_to_string(folder.join(file)).ok();
            Some(Self { id: text("id")?.trim().parse().ok()?, format: text("format")? })
        })
    }

    /// The offset and the size of a field, as in `field:dev_t dev; offset:8; size:4; signed:0;`
    /// (Documentation/trace/events.rst of the kernel).
    pub fn field(&self, name: &str) -> Option<Field> {
        self.format.lines().find_map(|line| {
            let declared = line.trim().strip_prefix("field:")?;
            let (declaration, rest) = declared.split_once(';')?;
            let variable = declaration.rsplit(' ').next()?;
            if variable.split('[').next()? != name {
                return None;
            }
            let number = |key: &str| -> Option<usize> {
                rest.split(';').find_map(|part| part.trim().strip_prefix(key))?.trim().parse().ok()
            };
            Some(Field { offset: number("offset:")?, size: number("size:")? })
        })
    }
}

/// A field of a tracepoint's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    offset: usize,
    size: usize,
}

impl Field {
    /// The bytes of the field.
    pub fn of<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        record.get(self.offset..self.offset.checked_add(self.size)?)
    }

    /// The number that the field holds, of four or eight bytes.
    pub fn number(&self, record: &[u8]) -> Option<u64> {
        let bytes = self.of(record)?;
        match *bytes {
            [a, b, c, d] => Some(u64::from(u32::from_ne_bytes([a, b, c, d]))),
            _ => Some(u64::from_ne_bytes(bytes.try_into().ok()?)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// As Linux 6.1 shows it.
    const FORMAT: &str = "name: block_rq_issue
ID: 1104
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:dev_t dev;	offset:8;	size:4;	signed:0;
	field:sector_t sector;	offset:16;	size:8;	signed:0;
	field:unsigned int nr_sector;	offset:24;	size:4;	signed:0;
	field:char rwbs[8];	offset:32;	size:8;	signed:0;

print fmt: \"%d,%d\"
";

    #[test]
    fn fields_are_found_by_their_names_and_read_from_a_record() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("events/block/block_rq_issue");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("id"), "1104\n").unwrap();
        std::fs::write(folder.join("format"), FORMAT).unwrap();
        let found = Tracepoint::find(&[Path::new("/nowhere"), dir.path()], "block/block_rq_issue").unwrap();
        assert_eq!(found.id, 1104);
        assert_eq!(found.field("rwbs"), Some(Field { offset: 32, size: 8 }));
        assert_eq!((found.field("sect"), found.field("ID")), (None, None));
        let mut record = vec![0_u8; 40];
        record[8..12].copy_from_slice(&7_u32.to_ne_bytes());
        record[16..24].copy_from_slice(&9_u64.to_ne_bytes());
        assert_eq!(found.field("dev").unwrap().number(&record), Some(7));
        assert_eq!(found.field("sector").unwrap().number(&record), Some(9));
        assert_eq!(found.field("rwbs").unwrap().of(&record[..36]), None);
        assert_eq!(Tracepoint::find(&[dir.path()], "block/block_rq_complete"), None);
    }
}
