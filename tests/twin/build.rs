//! The hash of the production code that plays are of: what tallies are added up by.

use std::path::{Path, PathBuf};

/// What a play runs, below the top of the tree.
const TREES: [&str; 6] = ["abi", "asic", "linux", "mgmt", "profiles", "switch"];

fn files(path: &Path, all: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(path)? {
        let path = entry?.path();
        if path.is_dir() {
            files(&path, all)?;
        } else {
            all.push(path);
        }
    }
    Ok(())
}

fn main() -> std::io::Result<()> {
    let top = Path::new("../..");
    let mut all = vec![top.join("Cargo.lock")];
    for tree in TREES {
        println!("cargo::rerun-if-changed=../../{tree}");
        files(&top.join(tree), &mut all)?;
    }
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    all.sort();
    // FNV-1a, 64 bits
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for path in all {
        let name = path.to_string_lossy().into_owned().into_bytes();
        for byte in name.into_iter().chain(std::fs::read(&path)?) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    println!("cargo::rustc-env=PRODUCTION={hash:016x}");
    Ok(())
}
