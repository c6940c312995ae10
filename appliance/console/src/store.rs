// SPDX-License-Identifier: Apache-2.0
//! Where configurations are kept, so that a power cut leaves the old one or the new one, never half of it.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// The largest configuration that is read.
pub const LARGEST: u64 = 16 << 20;

/// A file, as a directory has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Octets.
    pub size: u64,
    /// When it was written.
    pub modified: SystemTime,
}

/// Files by name, and octets: of the whole file system, and free ones.
pub type Listed = (Vec<Entry>, (u64, u64));

/// Files of configurations, by name.
pub trait Store {
    /// A file's text; `None`: there is none.
    ///
    /// # Errors
    /// It can't be read.
    fn read(&self, name: &str) -> io::Result<Option<String>>;

    /// Keeps a text under a name: after success it is there whatever happens, after failure the old one is, or the new.
    ///
    /// # Errors
    /// It can't be written.
    fn write(&mut self, name: &str, text: &str) -> io::Result<()>;

    /// Removes a file; that it was not there is fine.
    ///
    /// # Errors
    /// It can't be removed.
    fn erase(&mut self, name: &str) -> io::Result<()>;

    /// What there is.
    ///
    /// # Errors
    /// It can't be read.
    fn list(&self) -> io::Result<Listed>;
}

/// The files of all sessions.
#[derive(Clone)]
pub struct Shelf(Arc<Mutex<Box<dyn Store + Send>>>);

impl Shelf {
    /// Those of this store.
    #[must_use]
    pub fn new(store: Box<dyn Store + Send>) -> Shelf {
        Shelf(Arc::new(Mutex::new(store)))
    }

    fn lock(&self) -> MutexGuard<'_, Box<dyn Store + Send>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Shelf {
    fn read(&self, name: &str) -> io::Result<Option<String>> {
        self.lock().read(name)
    }

    fn list(&self) -> io::Result<Listed> {
        self.lock().list()
    }

    fn write(&mut self, name: &str, text: &str) -> io::Result<()> {
        self.lock().write(name, text)
    }

    fn erase(&mut self, name: &str) -> io::Result<()> {
        self.lock().erase(name)
    }
}

/// The steps of an atomic write, one by one, so that a test can let each of them fail.
pub trait Disk {
    /// What a file holds; `None`: there is none.
    ///
    /// # Errors
    /// As the system says.
    fn read(&self, path: &Path) -> io::Result<Option<Vec<u8>>>;
    /// Makes a file that holds this, and waits until it does.
    ///
    /// # Errors
    /// As the system says.
    fn write_synced(&mut self, path: &Path, data: &[u8]) -> io::Result<()>;
    /// Gives a file the name of another one, which is gone then.
    ///
    /// # Errors
    /// As the system says.
    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    ///
    /// # Errors
    /// As the system says.
    fn remove(&mut self, path: &Path) -> io::Result<()>;
    /// Waits until a folder's names are as they are said to be.
    ///
    /// # Errors
    /// As the system says.
    fn sync_folder(&mut self, path: &Path) -> io::Result<()>;

    /// Files of a folder but those that begin with a dot, and how large its file system is.
    ///
    /// # Errors
    /// It can't be read.
    fn list(&self, path: &Path) -> io::Result<Listed>;
}

/// The file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Files;

impl Disk for Files {
    fn read(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        let file = match fs::File::open(path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        let mut data = Vec::new();
        file.take(LARGEST + 1).read_to_end(&mut data)?;
        if data.len() as u64 > LARGEST {
            return Err(io::Error::other("larger than 16 MiB"));
        }
        Ok(Some(data))
    }

    fn write_synced(&mut self, path: &Path, data: &[u8]) -> io::Result<()> {
        // hashes of secrets and passwords of neighbours are in it: nobody else may read it at any moment
        self.remove(path)?;
        let mut file = fs::File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        file.write_all(data)?;
        file.sync_all()
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&mut self, path: &Path) -> io::Result<()> {
        match fs::remove_file(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }

    fn sync_folder(&mut self, path: &Path) -> io::Result<()> {
        fs::File::open(path)?.sync_all()
    }

    fn list(&self, path: &Path) -> io::Result<Listed> {
        let mut all = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let (name, of) = (entry.file_name(), entry.metadata()?);
            let name = name.to_string_lossy().into_owned();
            // those of nobody begin with a dot
            if of.is_file() && !name.starts_with('.') {
                let modified = of.modified().unwrap_or(UNIX_EPOCH);
                let size = of.len();
                all.push(Entry {
                    name,
                    size,
                    modified,
                });
            }
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        let of = rustix::fs::statvfs(path)?;
        let octets = |blocks: u64| blocks.saturating_mul(of.f_frsize);
        Ok((all, (octets(of.f_blocks), octets(of.f_bavail))))
    }
}

/// Files in a folder.
#[derive(Debug)]
pub struct FileStore<D = Files> {
    folder: PathBuf,
    disk: D,
}

impl FileStore<Files> {
    /// In this folder, which is made if it is not there, and is root's alone then.
    ///
    /// # Errors
    /// It can't be made.
    pub fn new(folder: impl Into<PathBuf>) -> io::Result<FileStore<Files>> {
        let folder = folder.into();
        if let Some(above) = folder.parent() {
            fs::create_dir_all(above)?;
        }
        let mut made = fs::DirBuilder::new();
        made.recursive(true).mode(0o700).create(&folder)?;
        Ok(FileStore::on(folder, Files))
    }
}

impl<D: Disk> FileStore<D> {
    /// In this folder of this disk.
    pub fn on(folder: PathBuf, disk: D) -> FileStore<D> {
        FileStore { folder, disk }
    }

    /// A name is one of a file in the folder, whoever asks.
    fn path(&self, name: &str) -> io::Result<PathBuf> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a file's name",
            ));
        }
        Ok(self.folder.join(name))
    }
}

impl<D: Disk> Store for FileStore<D> {
    fn read(&self, name: &str) -> io::Result<Option<String>> {
        let data = self.disk.read(&self.path(name)?)?;
        // what is not UTF-8 is a bad line, not a bad file
        Ok(data.map(|d| String::from_utf8_lossy(&d).into_owned()))
    }

    fn write(&mut self, name: &str, text: &str) -> io::Result<()> {
        let path = self.path(name)?;
        // a name with a dot in front is nobody's, so what a power cut leaves there is never read
        let new = self.folder.join(format!(".{name}.new"));
        let written = self.disk.write_synced(&new, text.as_bytes());
        let renamed = written.and_then(|()| self.disk.rename(&new, &path));
        if let Err(e) = renamed {
            // it is overwritten next time if it stays
            let _ = self.disk.remove(&new);
            return Err(e);
        }
        self.disk.sync_folder(&self.folder)
    }

    fn list(&self) -> io::Result<Listed> {
        self.disk.list(&self.folder)
    }

    fn erase(&mut self, name: &str) -> io::Result<()> {
        let path = self.path(name)?;
        self.disk.remove(&path)?;
        self.disk.sync_folder(&self.folder)
    }
}
