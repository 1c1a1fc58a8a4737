//! Envelope of packets: compression, and TLS around it. No I/O: bytes in, bytes out.

mod compress;
mod tls;
mod verify;

pub use compress::Codec;
pub(crate) use compress::ZSTD_LEVEL;
pub use tls::{PeerCertificate, Tls, TlsConfig};

use crate::error::WireError;

/// The layers of one connection.
#[derive(Debug)]
pub struct Envelope {
    tls: Option<Tls>,
    codec: Option<Codec>,
    /// Between the layers.
    middle: Vec<u8>,
}

impl Envelope {
    /// The active layers; `None` when there are none.
    pub fn new(tls: Option<Tls>, codec: Option<Codec>) -> Option<Box<Self>> {
        (tls.is_some() || codec.is_some()).then(|| Box::new(Self { tls, codec, middle: Vec::new() }))
    }

    /// Wraps complete packets of this side, appending to `out` the bytes for the wire.
    ///
    /// # Errors
    /// The TLS session is over.
    pub fn seal(&mut self, packets: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
        match (&mut self.codec, &mut self.tls) {
            (None, None) => out.extend_from_slice(packets),
            (Some(codec), None) => codec.encode(packets, out)?,
            (None, Some(tls)) => tls.seal(packets, out)?,
            (Some(codec), Some(tls)) => {
                self.middle.clear();
                codec.encode(packets, &mut self.middle)?;
                tls.seal(&self.middle, out)?;
                self.middle.clear();
            }
        }
        Ok(())
    }

    /// Unwraps received bytes, in any fragmentation, appending to `packets`: at most 17 MiB at a time of compressed
    /// frames that arrived together. While [`Self::has_more`], further calls without input return the rest.
    ///
    /// # Errors
    /// The received bytes are not valid.
    pub fn open(&mut self, received: &[u8], packets: &mut Vec<u8>) -> Result<(), WireError> {
        match (&mut self.codec, &mut self.tls) {
            (None, None) => packets.extend_from_slice(received),
            (Some(codec), None) => codec.decode(received, packets)?,
            (None, Some(tls)) => tls.open(received, packets)?,
            (Some(codec), Some(tls)) => {
                self.middle.clear();
                tls.open(received, &mut self.middle)?;
                codec.decode(&self.middle, packets)?;
                self.middle.clear();
            }
        }
        if self.middle.capacity() > 1 << 20 {
            self.middle = Vec::new();
        }
        Ok(())
    }

    /// Whether received frames wait to be opened.
    pub fn has_more(&self) -> bool {
        self.codec.as_ref().is_some_and(Codec::has_more)
    }

    /// The TLS layer, without compression.
    pub(crate) fn into_tls(self) -> Option<Tls> {
        self.tls
    }

    /// Appends the bytes that end the connection (TLS close_notify).
    pub fn close(&mut self, out: &mut Vec<u8>) {
        if let Some(tls) = &mut self.tls {
            tls.close(out);
        }
    }
}
