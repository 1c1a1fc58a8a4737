//! `.mylogin.cnf`: an option file that is encrypted with a key stored in the file itself, which protects it from casual
//! reading only.
//!
//! Four bytes that mean nothing, 20 bytes of key material, then for each line its length (four bytes, little-endian)
//! and that many bytes of AES-128-ECB with PKCS#7 padding. The key is the material folded onto 16 bytes by XOR
//! (`my_aes_create_key`).

use aes::Aes128;
use aes::cipher::{BlockDecrypt, KeyInit};
use zeroize::{Zeroize, Zeroizing};

/// Longest line that `mysql_config_editor` writes.
const MAX_LINE: usize = 4096;

/// The text of a login path file.
///
/// # Errors
/// A defect of the file, to follow its path in a message.
pub fn decrypt(bytes: &[u8]) -> Result<Zeroizing<Vec<u8>>, String> {
    let cut = || "it is cut short".to_owned();
    let (material, mut rest) = bytes.get(4..).and_then(|b| b.split_first_chunk::<20>()).ok_or_else(cut)?;
    let mut key = Zeroizing::new([0u8; 16]);
    for (i, byte) in material.iter().enumerate() {
        key[i % 16] ^= byte;
    }
    let cipher = Aes128::new((&*key).into());
    let mut text = Zeroizing::new(Vec::with_capacity(rest.len()));
    while !rest.is_empty() {
        let (length, after) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
        let length = u32::from_le_bytes(*length) as usize;
        if length == 0 || !length.is_multiple_of(16) || length > MAX_LINE {
            return Err(format!("a line of {length} bytes is none of its kind"));
        }
        let line = after.get(..length).ok_or_else(cut)?;
        rest = &after[length..];
        for block in line.chunks_exact(16) {
            let mut block = aes::Block::clone_from_slice(block);
            cipher.decrypt_block(&mut block);
            text.extend_from_slice(&block);
            block.as_mut_slice().zeroize();
        }
        let padding = usize::from(text.last().copied().unwrap_or_default());
        let is_padding = (1..=16).contains(&padding)
            && text.iter().rev().take(padding).all(|byte| usize::from(*byte) == padding);
        if !is_padding {
            return Err("its key does not fit its lines".to_owned());
        }
        let end = text.len() - padding;
        text.truncate(end);
    }
    Ok(text)
}
