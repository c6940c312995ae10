//! Every kept input through its target, without libFuzzer: what was found once stays mended.
//!
//! `corpus/TARGET.tar.gz` has the inputs that libFuzzer kept; beside it `corpus/TARGET/` has those with a name.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A name, and the bytes.
type Input = (String, Vec<u8>);

const ARCHIVE: &str = ".tar.gz";
/// Headers and contents of a tar archive begin at multiples of this.
const BLOCK: usize = 512;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn sorted(dir: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(dir)
        .unwrap_or_else(|e| panic!("{}: {e}", dir.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    all.sort();
    all
}

/// A number of a header: octal digits, filled up with blanks or zeros.
fn octal(field: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(field).ok()?;
    usize::from_str_radix(text.trim_matches([' ', '\0']), 8).ok()
}

/// The files of a tar archive (POSIX ustar) that holds nothing else; an archive that was cut or changed is an error.
fn unpack(tar: &[u8]) -> Result<Vec<Input>, String> {
    let mut out = Vec::new();
    let mut at = 0;
    loop {
        let header = tar
            .get(at..at + BLOCK)
            .ok_or("ends without an empty block")?;
        if header.iter().all(|&b| b == 0) {
            return Ok(out);
        }
        // of all bytes, the sum's own as if they were blanks
        let sum: usize = header
            .iter()
            .enumerate()
            .map(|(i, &b)| {
                if (148..156).contains(&i) {
                    32
                } else {
                    usize::from(b)
                }
            })
            .sum();
        if octal(&header[148..156]) != Some(sum) || header[156] != b'0' {
            return Err(format!("no header of a file at byte {at}"));
        }
        let name = String::from_utf8_lossy(&header[..100]);
        let name = name.trim_end_matches('\0').to_owned();
        let size = octal(&header[124..136]).ok_or_else(|| format!("{name}: no size"))?;
        at += BLOCK;
        let data = tar
            .get(at..at + size)
            .ok_or_else(|| format!("{name}: cut short"))?;
        out.push((name, data.to_vec()));
        at += size.next_multiple_of(BLOCK);
    }
}

fn unzipped(path: &Path) -> Vec<u8> {
    let out = Command::new("gzip")
        .arg("-dc")
        .arg(path)
        .output()
        .expect("gzip");
    assert!(
        out.status.success(),
        "{}: {}",
        path.display(),
        String::from_utf8_lossy(&out.stderr)
    );
    out.stdout
}

/// The kept inputs of a target: first its archive's, then those with a name.
fn inputs(target: &str) -> Vec<Input> {
    let archive = corpus().join(format!("{target}{ARCHIVE}"));
    let mut all =
        unpack(&unzipped(&archive)).unwrap_or_else(|e| panic!("{}: {e}", archive.display()));
    assert!(!all.is_empty(), "{} has no inputs", archive.display());
    let named = corpus().join(target);
    if named.exists() {
        for file in sorted(&named) {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            all.push((name, std::fs::read(&file).unwrap()));
        }
    }
    all
}

/// Says which input it was, where a target panics.
struct Playing<'a>(&'a str, &'a str);

impl Drop for Playing<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}: the input {}", self.0, self.1);
        }
    }
}

#[test]
fn every_target_has_an_archive_and_every_archive_a_target() {
    let names: Vec<&str> = tandem_fuzz::TARGETS.iter().map(|t| t.name).collect();
    assert!(names.is_sorted());
    let mut archives = BTreeSet::new();
    for path in sorted(&corpus()) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        match name.strip_suffix(ARCHIVE) {
            Some(target) => {
                archives.insert(target.to_owned());
            }
            None => assert!(
                names.contains(&name.as_str()),
                "{name}: no archive, and no target's folder"
            ),
        }
    }
    let names: BTreeSet<String> = names.iter().map(|&n| n.to_owned()).collect();
    assert_eq!(archives, names, "archives of fuzz/corpus, and TARGETS");
}

#[test]
fn archives_that_are_cut_or_changed_are_errors() {
    let tar = unzipped(&corpus().join(format!("carrier{ARCHIVE}")));
    assert!(unpack(&tar).is_ok_and(|inputs| inputs.len() > 1));
    assert!(unpack(&[]).is_err());
    assert!(unpack(&tar[..BLOCK + 1]).is_err());
    assert!(unpack(&tar[..2 * BLOCK]).is_err());
    let mut changed = tar.clone();
    changed[0] ^= 1;
    assert!(unpack(&changed).is_err());
}

#[test]
fn kept_inputs_are_taken() {
    let mut played = Vec::new();
    for target in tandem_fuzz::TARGETS {
        let all = inputs(target.name);
        for (name, data) in &all {
            let _playing = Playing(target.name, name);
            (target.run)(data);
        }
        // and cut short: nothing may hang on the end being there
        for (name, data) in all.iter().take(50) {
            let _playing = Playing(target.name, name);
            (target.run)(&data[..data.len() / 2]);
        }
        played.push((target.name, all.len()));
    }
    let sum: usize = played.iter().map(|p| p.1).sum();
    let each: Vec<String> = played
        .iter()
        .map(|(name, n)| format!("{name} {n}"))
        .collect();
    // past the capture of the test's output: a run says how many it played
    let mut out = std::io::stderr();
    writeln!(out, "\nkept fuzz inputs: {sum} ({})", each.join(", ")).unwrap();
}
