//! SHA-256, which agents record of files, in hexadecimal digits.

use std::io::{self, Read, Write};

use sha2::{Digest, Sha256};

/// Bytes in hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.extend([byte >> 4, byte & 15].map(|half| char::from(DIGITS[usize::from(half)])));
    }
    text
}

/// The hash of some bytes.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The hash of what is read, and how many bytes that is.
pub(crate) fn of_reader(reader: &mut impl Read) -> io::Result<(String, u64)> {
    let mut hashing = Hashing::new(io::sink());
    io::copy(reader, &mut hashing)?;
    Ok(hashing.finish())
}

/// Passes on what is written to it, and hashes it.
pub(crate) struct Hashing<W> {
    out: W,
    sha256: Sha256,
    bytes: u64,
}

impl<W: Write> Hashing<W> {
    pub(crate) fn new(out: W) -> Hashing<W> {
        Hashing { out, sha256: Sha256::new(), bytes: 0 }
    }

    /// The hash, and how many bytes it is of.
    pub(crate) fn finish(self) -> (String, u64) {
        (hex(&self.sha256.finalize()), self.bytes)
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.out.write(bytes)?;
        self.sha256.update(&bytes[..taken]);
        self.bytes += taken as u64;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_passed_on_is_what_is_hashed() {
        let mut out = Vec::new();
        let mut hashing = Hashing::new(&mut out);
        hashing.write_all(b"ab").unwrap();
        hashing.write_all(b"c").unwrap();
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((hashing.finish(), sha256(b"abc")), ((known.to_owned(), 3), known.to_owned()));
        assert_eq!(out, b"abc");
    }
}
