// SPDX-License-Identifier: Apache-2.0
//! The file, and the one that is to take its place.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::batch::{Boot, head, seal};

/// A file is written anew when it is twice as long as when it had been written, and by so much longer; while something comes
/// at twice that length: it would have to wait.
const SPARE: u64 = 4 << 20;
/// Room for a batch of so many bytes is kept.
const ROOM: usize = 1 << 18;

/// A file of batches.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    boot: Boot,
    /// `None`: nothing is kept.
    now: Option<Grown>,
    /// All that there is, as far as it is written; the turns' batches as well.
    next: Option<Grown>,
    whole: u64,
}

#[derive(Debug)]
struct Grown {
    file: File,
    len: u64,
    batch: Vec<u8>,
}

impl Grown {
    fn append(&mut self, records: &[u8]) -> io::Result<()> {
        let frame = seal(records).ok_or_else(|| io::Error::from(io::ErrorKind::FileTooLarge))?;
        self.batch.clear();
        self.batch.extend_from_slice(&frame);
        self.batch.extend_from_slice(records);
        self.file.write_all(&self.batch)?;
        self.len += self.batch.len() as u64;
        self.batch.shrink_to(ROOM);
        Ok(())
    }
}

impl Store {
    /// A file at this path, once it has been written. Nothing is kept yet.
    pub fn new(path: &Path, boot: Boot) -> Store {
        Store {
            path: path.to_owned(),
            boot,
            now: None,
            next: None,
            whole: 0,
        }
    }

    /// What an earlier process left there.
    ///
    /// # Errors
    /// It can't be read; that there is none is no error.
    pub fn left(path: &Path) -> io::Result<Option<Vec<u8>>> {
        match fs::read(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    /// Is what is appended kept?
    pub fn keeps(&self) -> bool {
        self.now.is_some()
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.now.as_ref().map_or(0, |g| g.len)
    }

    /// Is all to be written anew? `quiet`: nothing comes at this time.
    pub fn is_long(&self, quiet: bool) -> bool {
        let times = if quiet { 1 } else { 2 };
        self.next.is_none() && self.bytes() > times * (2 * self.whole + SPARE)
    }

    /// Is all being written anew?
    pub fn is_written(&self) -> bool {
        self.next.is_some()
    }

    fn beside(&self) -> PathBuf {
        self.path.with_extension("new")
    }

    /// All that there is comes, by [`Store::slice`].
    ///
    /// # Errors
    /// The file can't be made. What is kept already goes on; where nothing is, an earlier process's file would be taken
    /// for this one's.
    pub fn begin(&mut self) -> io::Result<()> {
        self.next = None;
        let done = self.open().map(|next| self.next = Some(next));
        if done.is_err() && self.keeps() {
            let _ = fs::remove_file(self.beside());
            return done;
        }
        self.or_fail(done)
    }

    fn open(&self) -> io::Result<Grown> {
        let beside = self.beside();
        let _ = fs::remove_file(&beside);
        let mut file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&beside)?;
        let head = head(&self.boot);
        file.write_all(&head)?;
        let len = head.len() as u64;
        Ok(Grown {
            file,
            len,
            batch: Vec::new(),
        })
    }

    /// What a turn has changed.
    ///
    /// # Errors
    /// There is no room: nothing is kept any more.
    pub fn append(&mut self, records: &[u8]) -> io::Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        let all = [&mut self.now, &mut self.next];
        let done = all
            .into_iter()
            .flatten()
            .try_for_each(|g| g.append(records));
        self.or_fail(done)
    }

    /// A part of all that there is; `None`: that was all, and the file takes the other's place.
    ///
    /// # Errors
    /// As [`Store::append`].
    pub fn slice(&mut self, records: Option<&[u8]>) -> io::Result<()> {
        let Some(next) = &mut self.next else {
            return Ok(());
        };
        let done = match records {
            Some(records) => next.append(records),
            None => fs::rename(self.path.with_extension("new"), &self.path),
        };
        if records.is_none() && done.is_ok() {
            self.now = self.next.take();
            self.whole = self.bytes();
        }
        self.or_fail(done)
    }

    /// Nothing is kept any more.
    ///
    /// # Errors
    /// That is one, for this reason.
    pub fn give_up(&mut self, why: &'static str) -> io::Result<()> {
        self.or_fail(Err(io::Error::other(why)))
    }

    /// A file that lacks what was acknowledged is none.
    fn or_fail(&mut self, done: io::Result<()>) -> io::Result<()> {
        if done.is_err() {
            (self.now, self.next) = (None, None);
            let _ = fs::remove_file(&self.path);
            let _ = fs::remove_file(self.beside());
        }
        done
    }
}
