//! Every kept input through its target, without libFuzzer: what was found once stays mended.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::{Path, PathBuf};

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

#[test]
fn every_target_has_a_corpus_and_every_corpus_a_target() {
    let folders: Vec<String> = sorted(&corpus())
        .iter()
        .map(|p| p.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    let names: Vec<&str> = tandem_fuzz::TARGETS.iter().map(|t| t.name).collect();
    assert_eq!(folders, names, "folders of fuzz/corpus, and TARGETS");
    assert!(names.is_sorted());
}

/// Which input it was is in the output of a test that fails.
#[test]
fn kept_inputs_are_taken() {
    for target in tandem_fuzz::TARGETS {
        let files = sorted(&corpus().join(target.name));
        assert!(!files.is_empty(), "{} has no inputs", target.name);
        for file in &files {
            let data = std::fs::read(file).unwrap();
            println!("{}", file.display());
            (target.run)(&data);
        }
        // and cut short: nothing may hang on the end being there
        for file in files.iter().take(50) {
            let data = std::fs::read(file).unwrap();
            (target.run)(&data[..data.len() / 2]);
        }
    }
}
