// SPDX-License-Identifier: Apache-2.0
//! A power cut at any write: the old file or the new one, never half of it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::store::{Disk, FileStore, Store};

/// A disk as it is after a power cut: what was not synced may be there, or not, or half. Each step may be the last.
#[derive(Clone, Default)]
struct Cut {
    /// What would be read after the cut, the worst of it.
    files: Rc<std::cell::RefCell<BTreeMap<PathBuf, Vec<u8>>>>,
    left: Rc<Cell<usize>>,
}

impl Cut {
    /// `false`: the power is gone.
    fn step(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left > 0
    }
}

fn gone() -> io::Error {
    io::Error::other("power cut")
}

impl Disk for Cut {
    fn read(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        Ok(self.files.borrow().get(path).cloned())
    }

    fn write_synced(&mut self, path: &Path, data: &[u8]) -> io::Result<()> {
        // begun, half, all of it
        for part in [0, data.len() / 2, data.len()] {
            if !self.step() {
                return Err(gone());
            }
            self.files
                .borrow_mut()
                .insert(path.into(), data[..part].to_vec());
        }
        Ok(())
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        if !self.step() {
            return Err(gone());
        }
        let data = self.files.borrow_mut().remove(from);
        self.files
            .borrow_mut()
            .insert(to.into(), data.ok_or_else(gone)?);
        Ok(())
    }

    fn remove(&mut self, path: &Path) -> io::Result<()> {
        if !self.step() {
            return Err(gone());
        }
        self.files.borrow_mut().remove(path);
        Ok(())
    }

    fn list(&self, _: &Path) -> io::Result<crate::store::Listed> {
        Ok((Vec::new(), (0, 0)))
    }

    fn sync_folder(&mut self, _path: &Path) -> io::Result<()> {
        if self.step() { Ok(()) } else { Err(gone()) }
    }
}

#[test]
fn a_power_cut_at_each_step() {
    let mut done = 0;
    for steps in 0..10 {
        let disk = Cut::default();
        disk.left.set(usize::MAX);
        let mut store = FileStore::on(PathBuf::from("/f"), disk.clone());
        store.write("startup-config", "the old one").unwrap();
        disk.left.set(steps);
        let written = store.write("startup-config", "the new and longer one");
        let text = store.read("startup-config").unwrap().unwrap();
        assert!(
            ["the old one", "the new and longer one"].contains(&text.as_str()),
            "{steps}: {text}"
        );
        if written.is_ok() {
            assert_eq!(text, "the new and longer one", "what is said to be kept is");
            done += 1;
        }
        // and the next time it works
        disk.left.set(usize::MAX);
        store.write("startup-config", "third").unwrap();
        assert_eq!(store.read("startup-config").unwrap().unwrap(), "third");
        assert_eq!(disk.files.borrow().len(), 1);
    }
    assert_eq!(done, 5, "after the fifth step all of it has happened");
}

#[test]
fn in_a_folder() {
    let folder = std::env::temp_dir().join(format!("tandem-console-{}", std::process::id()));
    let mut store = FileStore::new(&folder).unwrap();
    assert_eq!(store.read("startup-config").unwrap(), None);
    store.write("startup-config", "a").unwrap();
    store.write("startup-config", "b\u{e4}").unwrap();
    // what an older one has left, and what a power cut has
    let old = std::fs::File::create(folder.join(".startup-config.new")).unwrap();
    old.set_permissions(std::fs::Permissions::from_mode(0o644))
        .unwrap();
    store.write("startup-config", "b\u{e4}").unwrap();
    for (path, mode) in [
        (folder.clone(), 0o700),
        (folder.join("startup-config"), 0o600),
    ] {
        let is = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(is & 0o777, mode, "{path:?}: hashes of secrets are in it");
    }
    assert_eq!(store.read("startup-config").unwrap().unwrap(), "b\u{e4}");
    assert_eq!(
        std::fs::read_dir(&folder).unwrap().count(),
        1,
        "nothing is left beside it"
    );
    std::fs::write(folder.join("odd"), b"vlan 5\n\xff\xfe\n").unwrap();
    assert!(store.read("odd").unwrap().unwrap().starts_with("vlan 5\n"));
    for name in ["", "../x", "a/b", ".hidden", "a\0b"] {
        assert!(
            store.read(name).is_err()
                && store.write(name, "").is_err()
                && store.erase(name).is_err(),
            "{name}"
        );
    }
    store.erase("startup-config").unwrap();
    store.erase("startup-config").unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}
