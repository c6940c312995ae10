//! The layout of `abi/tandem.h` is the frozen one, for this compiler and for a C compiler.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use tandem_abi::raw;

fn abi() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// (struct, field) → offset; (struct, "") → size.
fn table() -> BTreeMap<(String, String), usize> {
    let text = std::fs::read_to_string(abi().join("tests/layout.def")).unwrap();
    let mut rows = BTreeMap::new();
    for line in text.lines().filter(|l| !l.starts_with("/*")) {
        let (kind, args) = line.trim_end_matches(')').split_once('(').unwrap();
        let args: Vec<&str> = args.split(", ").collect();
        let (key, n) = match (kind, &args[..]) {
            ("SIZE", [s, n]) => ((s.to_string(), String::new()), n),
            ("OFFSET", [s, f, n]) => ((s.to_string(), f.to_string()), n),
            _ => panic!("can't read {line}"),
        };
        assert!(rows.insert(key, n.parse().unwrap()).is_none(), "{line}");
    }
    rows
}

#[test]
fn rust_lays_out_what_is_frozen() {
    let have: BTreeMap<(String, String), usize> = raw::LAYOUT
        .iter()
        .map(|(s, f, n)| ((s.to_string(), f.unwrap_or("").to_string()), *n))
        .collect();
    let want = table();
    for (key, n) in &want {
        assert_eq!(have.get(key), Some(n), "{key:?}: the ABI is broken");
    }
    for key in have.keys() {
        assert!(
            want.contains_key(key),
            "{key:?} is new: `cargo run -p tandem-abi-gen -- --layout`"
        );
    }
    assert!(want.len() > 200);
}

/// Compiles C text that sees the header; the compiler's words if it refuses.
fn compile(source: &Path) -> Result<(), String> {
    let out = Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Wpadded", "-Werror"])
        .arg("-fsyntax-only")
        .arg("-I")
        .arg(abi().join("tests"))
        .arg(source)
        .output()
        .expect("a C compiler (cc) is needed for this test: apt-get install gcc libc6-dev");
    if out.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&out.stderr).into_owned())
    }
}

#[test]
fn c_lays_out_what_is_frozen() {
    compile(&abi().join("tests/layout.c")).unwrap();
}

#[test]
fn the_c_test_can_fail() {
    let dir = std::env::temp_dir().join(format!("tandem-layout-{}", std::process::id()));
    std::fs::create_dir_all(dir.join("tests")).unwrap();
    // a field moved inside of one struct
    let header = std::fs::read_to_string(abi().join("tandem.h")).unwrap();
    let broken = header.replacen(
        "\t__le32\tseq;\n\t__le32\tlease;",
        "\t__le32\tlease;\n\t__le32\tseq;",
        1,
    );
    assert_ne!(header, broken);
    std::fs::write(dir.join("tandem.h"), broken).unwrap();
    let objects = "tandem_objects.h";
    std::fs::copy(abi().join(objects), dir.join(objects)).unwrap();
    let source = dir.join("tests/layout.c");
    std::fs::copy(abi().join("tests/layout.c"), &source).unwrap();
    let said = compile(&source).unwrap_err();
    assert!(said.contains("tnd_cmd.lease"), "{said}");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn sizes_that_the_frame_freezes() {
    use std::mem::{offset_of, size_of};
    assert_eq!(size_of::<raw::tnd_cmd>(), raw::TND_CMD_SIZE);
    assert_eq!(size_of::<raw::tnd_cpl>(), raw::TND_CPL_SIZE);
    assert_eq!(size_of::<raw::tnd_event>(), raw::TND_EVENT_SIZE);
    assert_eq!(size_of::<raw::tnd_rx>(), raw::TND_PKT_META_SIZE);
    assert_eq!(size_of::<raw::tnd_tx>(), raw::TND_PKT_META_SIZE);
    assert_eq!(offset_of!(raw::tnd_header, req_op), 256);
    assert_eq!(offset_of!(raw::tnd_header, ack_seq), 320);
    assert_eq!(raw::TND_MAGIC.to_le_bytes(), *b"TANDEM01");
}
