//! Reads blobs: the true bytes of files, named by their BLAKE3 hash, compressed, shared by all sessions of a store.
//!
//! Names come from logs and the files from anybody: a name that is no hash is refused, and bytes that do not have it are an error.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use zstd::zstd_safe::{self, DCtx};

use crate::model::error::{At, Error, Result};
use crate::model::regular_file::{self, Links};

/// A blob that is larger, packed or unpacked, is not read: a few packed bytes can unpack to any number.
pub(crate) const BLOB_LIMIT_BYTES: u64 = 2 * 1024 * 1024 * 1024;

/// Bytes are copied in pieces of this size, so that a blob of any size takes little memory.
pub(crate) const PIECE_BYTES: usize = 256 * 1024;

/// Room behind what is unpacked: without it zstd copies the end of a blob byte by byte, and of a small one that is most of it.
const SPARE_BYTES: usize = 64;

/// How the seal of a blob begins: a frame that zstd passes over, and how long what is in it is.
const SEAL_BEGIN: [u8; 8] = [0x5b, 0x2a, 0x4d, 0x18, blake3::OUT_LEN as u8, 0, 0, 0];
const SEAL_BYTES: usize = SEAL_BEGIN.len() + blake3::OUT_LEN;

/// The folder of a store's blobs.
pub fn folder(store: &Path) -> PathBuf {
    store.join("blobs")
}

/// Whether a text can be the name of a blob: 64 hexadecimal digits in lower case.
pub fn is_name(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The file of a blob. Two digits make a folder, so that none has too many files.
pub(crate) fn path_of(folder: &Path, name: &str) -> Result<PathBuf> {
    if !is_name(name) {
        return Err(Error::InvalidCopy(name.to_owned()));
    }
    let mut path = PathBuf::with_capacity(folder.as_os_str().len() + name.len() + "/00/".len());
    path.extend([folder, Path::new(&name[..2]), Path::new(name)]);
    Ok(path)
}

/// The bytes of a blob.
pub fn get(folder: &Path, name: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    copy_to(folder, name, Path::new(name), &mut bytes)?;
    Ok(bytes)
}

/// Writes the bytes of a blob to `writer`, which writes the file `to`, and returns how many they are. After an error, what was
/// written is not the blob: only at its end is it known whether its bytes have its name.
pub fn copy_to(folder: &Path, name: &str, to: &Path, writer: &mut dyn Write) -> Result<u64> {
    let path = path_of(folder, name)?;
    UNPACKER.with_borrow_mut(|Unpacker { context, packed, bytes }| {
        // A small blob is read and unpacked at once: most files of a project are small, and a plan checks all of them. One read that
        // does not fill the buffer has all of a file.
        let read = read_some(&mut regular_file::open_own(&path)?, packed).at(&path)?;
        let small = if read < packed.len() { &packed[..read] } else { &[] };
        if let Ok(Some(length)) = zstd_safe::get_frame_content_size(small)
            && length <= PIECE_BYTES as u64
        {
            bytes.clear();
            bytes.reserve(length as usize + SPARE_BYTES);
            let unpacked = context.decompress(bytes, small);
            unpacked.map_err(|code| io::Error::other(zstd_safe::get_error_name(code))).at(&path)?;
            check_name(blake3::hash(bytes), name, &path)?;
            writer.write_all(bytes).at(to)?;
            return Ok(bytes.len() as u64);
        }
        let blob = zstd::stream::Decoder::with_context(open_packed(&path)?, context);
        copy_checked(blob, name, &path, to, writer)
    })
}

/// Whether a blob is there and whole. One with a seal need not be unpacked for that.
pub(crate) fn check(folder: &Path, name: &str) -> Result<()> {
    let path = path_of(folder, name)?;
    let is_sealed = UNPACKER.with_borrow_mut(|Unpacker { packed, .. }| {
        let read = read_some(&mut regular_file::open_own(&path)?, packed).at(&path)?;
        Ok(read < packed.len() && is_sealed(&packed[..read], name))
    })?;
    if is_sealed {
        return Ok(());
    }
    copy_to(folder, name, Path::new(name), &mut io::sink()).map(drop)
}

/// A packed blob with its seal: a hash of the packed bytes, for which the name is the key.
pub(crate) fn sealed(mut packed: Vec<u8>, name: &blake3::Hash) -> Vec<u8> {
    let seal = blake3::keyed_hash(name.as_bytes(), &packed);
    packed.extend(SEAL_BEGIN.iter().chain(seal.as_bytes()));
    packed
}

fn is_sealed(file: &[u8], name: &str) -> bool {
    let Some((packed, seal)) = file.split_last_chunk::<SEAL_BYTES>() else { return false };
    let Ok(name) = blake3::Hash::from_hex(name) else { return false };
    seal.strip_prefix(&SEAL_BEGIN)
        .is_some_and(|seal| seal == blake3::keyed_hash(name.as_bytes(), packed).as_bytes())
}

fn read_some(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

fn copy_checked(mut blob: impl Read, name: &str, path: &Path, to: &Path, writer: &mut dyn Write) -> Result<u64> {
    let (mut hasher, mut length, mut piece) = (blake3::Hasher::new(), 0, vec![0; PIECE_BYTES]);
    loop {
        let read = match blob.read(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read.at(path)?,
        };
        if read == 0 {
            break;
        }
        length += read as u64;
        regular_file::check_length(path, length, BLOB_LIMIT_BYTES)?;
        hasher.update(&piece[..read]);
        writer.write_all(&piece[..read]).at(to)?;
    }
    check_name(hasher.finalize(), name, path)?;
    Ok(length)
}

fn check_name(hash: blake3::Hash, name: &str, path: &Path) -> Result<()> {
    if hash.to_hex().as_str() == name {
        return Ok(());
    }
    let why = "damaged: its bytes do not have its name";
    Err(io::Error::new(io::ErrorKind::InvalidData, why)).at(path)
}

/// What unpacks small blobs, one for each thread: creating it takes longer than unpacking one.
struct Unpacker {
    context: DCtx<'static>,
    packed: Vec<u8>,
    bytes: Vec<u8>,
}

thread_local! {
    static UNPACKER: RefCell<Unpacker> =
        RefCell::new(Unpacker { context: DCtx::create(), packed: vec![0; PIECE_BYTES], bytes: Vec::new() });
}

/// Opens the file of a blob. Its bytes are checked only by those who read all of them.
pub(crate) fn open(path: &Path) -> Result<zstd::stream::Decoder<'static, BufReader<File>>> {
    zstd::stream::Decoder::with_buffer(open_packed(path)?).at(path)
}

fn open_packed(path: &Path) -> Result<BufReader<File>> {
    let (file, metadata) = regular_file::open(path, Links::Refuse)?;
    regular_file::check_length(path, metadata.len(), BLOB_LIMIT_BYTES)?;
    if metadata.len() == 0 {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof)).at(path);
    }
    let buffer_bytes = usize::try_from(metadata.len()).map_or(PIECE_BYTES, |bytes| bytes.min(PIECE_BYTES));
    Ok(BufReader::with_capacity(buffer_bytes, file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn store(name: &str, packed: &[u8]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(&name[..2])).unwrap();
        fs::write(dir.path().join(&name[..2]).join(name), packed).unwrap();
        dir
    }

    fn packed(bytes: &[u8]) -> (String, Vec<u8>) {
        (blake3::hash(bytes).to_hex().to_string(), zstd::bulk::compress(bytes, 3).unwrap())
    }

    #[test]
    fn a_blob_is_read_whole() {
        for bytes in [b"".to_vec(), b"a\r\nb".to_vec(), vec![7; 3 * PIECE_BYTES + 1]] {
            let (name, packed) = packed(&bytes);
            let dir = store(&name, &packed);
            assert!(get(dir.path(), &name).unwrap() == bytes, "{} bytes", bytes.len());
        }
    }

    #[test]
    fn damage_is_an_error() {
        let (name, whole) = packed(b"high water at 04:12");
        let (_, other) = packed(b"high water at 04:13");
        for damaged in [&whole[..whole.len() - 1], &other, b"", b"high water at 04:12"] {
            let dir = store(&name, damaged);
            assert!(matches!(get(dir.path(), &name), Err(Error::Io { .. })), "{damaged:?}");
        }
    }

    #[test]
    fn a_seal_tells_damage_as_unpacking_does() {
        let (name, packed) = packed(&b"high water at 04:12\n".repeat(50));
        let whole = sealed(packed, &blake3::Hash::from_hex(&name).unwrap());
        let dir = store(&name, &whole);
        assert_eq!(get(dir.path(), &name).unwrap(), b"high water at 04:12\n".repeat(50));
        check(dir.path(), &name).unwrap();
        // Else every check unpacks, and tells the same.
        assert!(is_sealed(&whole, &name));
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            assert!(!is_sealed(&damaged, &name), "byte {at}");
            let dir = store(&name, &damaged);
            assert_eq!(check(dir.path(), &name).is_ok(), get(dir.path(), &name).is_ok(), "byte {at}");
            let dir = store(&name, &whole[..at]);
            assert_eq!(check(dir.path(), &name).is_ok(), get(dir.path(), &name).is_ok(), "cut at {at}");
        }
        let other = blake3::hash(b"other").to_hex().to_string();
        check(store(&other, &whole).path(), &other).unwrap_err();
    }

    #[test]
    fn a_name_that_is_no_hash_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("x"), "").unwrap();
        for name in ["", "x", "../x", &"A".repeat(64), &"0".repeat(63), &format!("../{}", "0".repeat(61))] {
            assert!(matches!(get(dir.path(), name), Err(Error::InvalidCopy(_))), "{name}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_the_place_of_a_blob_is_not_followed() {
        let (name, packed) = packed(b"tide");
        let dir = store(&name, &packed);
        let path = dir.path().join(&name[..2]).join(&name);
        fs::rename(&path, dir.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), &path).unwrap();
        assert!(matches!(get(dir.path(), &name), Err(Error::NotAFile(_))));
    }
}
