//! Certificates beside the server's own: a renewed one that nobody has named yet.

use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};

use crate::context::Context;
use crate::der::Certificate;
use crate::mounts;
use crate::source::Read;

/// Files of a folder that are looked at.
const MOST: usize = 200;

/// Certificates that are told.
const LISTED: usize = 20;

/// Certificates for the same names in the folder of the server's own that are valid for longer: file, left_s.
pub(super) fn beside(context: &Context, path: &str, own: &Certificate) -> Read<Vec<Value>> {
    let server = context.server.as_ref().map_err(Clone::clone)?;
    let view = mounts::view(&context.source, server)?;
    let Some((folder, own_name)) = path.rsplit_once('/') else { return Ok(vec![]) };
    let (Some(own_end), Some(names)) = (own.not_after(), own.names()) else { return Ok(vec![]) };
    let now = OffsetDateTime::now_utc();
    let is_certificate =
        |name: &String| name != own_name && [".pem", ".crt", ".cer"].iter().any(|end| name.ends_with(end));
    let mut found = Vec::new();
    let all = context.source.list(&format!("{view}{folder}"))?;
    for name in all.into_iter().filter(is_certificate).take(MOST) {
        let path = format!("{folder}/{name}");
        let text = context.source.text_within(&format!("{view}{path}"), 64 << 10).unwrap_or_default();
        let Some(other) = Certificate::read(&text) else { continue };
        let Some(end) = other.not_after().filter(|end| *end > own_end + Duration::DAY) else { continue };
        if !names.is_empty() && other.names().as_ref() == Some(&names) && found.len() < LISTED {
            let left_s = (end.assume_utc() - now).as_seconds_f64().round();
            found.push(json!({"file": path, "left_s": left_s}));
        }
    }
    Ok(found)
}
