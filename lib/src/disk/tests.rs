//! The machine's own disk: what is forgiven, and where a path leads.

use super::*;

#[test]
fn a_folder_that_cannot_be_synced_is_forgiven_and_a_broken_disk_is_not() {
    for kind in [io::ErrorKind::InvalidInput, io::ErrorKind::Unsupported] {
        assert!(ignore_unsupported(Err(kind.into())).is_ok(), "{kind:?}");
    }
    for kind in [io::ErrorKind::StorageFull, io::ErrorKind::PermissionDenied, io::ErrorKind::Other] {
        assert!(ignore_unsupported(Err(kind.into())).is_err(), "{kind:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_path_is_where_its_links_lead_whether_or_not_it_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir(root.join("real")).unwrap();
    std::os::unix::fs::symlink(root.join("real"), root.join("link")).unwrap();
    for (path, expected) in [("link/a/b", "real/a/b"), ("link", "real"), ("new/x", "new/x"), ("", "")] {
        assert_eq!(Real.resolve(&root.join(path)), root.join(expected), "{path}");
    }
}
