//! Generates `abi/rust/src/generated.rs` from `abi/tandem.h`.
//!
//! ```text
//! tandem-abi-gen                writes abi/rust/src/generated.rs
//! tandem-abi-gen --check        exits 1 with one line if the checked-in file is not current
//! tandem-abi-gen --layout       writes abi/tests/layout.def, the table of frozen sizes and offsets
//! ```
//!
//! The layout table is written on purpose only: a difference between it and the header is an ABI
//! break, or an object that grew at its end.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use bindgen::callbacks::{DeriveInfo, DeriveTrait, ImplementsTrait, IntKind, ParseCallbacks};

/// Enumerations get the width of the field that carries them, so that
/// `cmd.op == TND_OP_CREATE` needs no cast: 16 bits but for these. Kept in step with the struct fields of the header.
const ENUM_WIDTH: &[(&str, &str)] = &[
    ("tnd_device_state", "u32"),
    ("tnd_request", "u32"),
    ("tnd_fail_reason", "u32"),
    ("tnd_stp_state", "u8"),
    ("tnd_action", "u8"),
    ("tnd_route_target", "u8"),
    ("tnd_storm_kind", "u8"),
];

/// Macros by prefix: the longest prefix wins; the width is that of the field that carries them.
/// Sizes and counts are `usize`.
const MACRO_WIDTH: &[(&str, &str)] = &[
    ("TND_", "u32"),
    ("TND_MAGIC", "u64"),
    ("TND_FEAT_", "u64"),
    ("TND_ABI_", "u16"),
    ("TND_HEADER_SIZE", "usize"),
    ("TND_MAX_", "usize"),
    ("TND_CMD_SIZE", "usize"),
    ("TND_CPL_SIZE", "usize"),
    ("TND_EVENT_SIZE", "usize"),
    ("TND_PKT_META_SIZE", "usize"),
    ("TND_BODY_INLINE", "usize"),
    ("TND_NAME_SIZE", "usize"),
    ("TND_NHG_MAX_MEMBERS", "usize"),
    ("TND_MDB_MAX_PORTS", "usize"),
    ("TND_PORT_SET_BYTES", "usize"),
    ("TND_FLOWS_FID", "u16"),
    ("TND_LEASE_MAX_CLASSES", "usize"),
    ("TND_RX_", "u16"),
    ("TND_TX_", "u16"),
    ("TND_FDB_", "u16"),
    ("TND_MDB_", "u16"),
    ("TND_AF_", "u8"),
    ("TND_ACL_BIND_", "u16"),
    ("TND_ACL_WIDTH_", "u8"),
    ("TND_ACL_UNTAGGED", "u8"),
    ("TND_ACL_TAG_", "u8"),
    ("TND_ACL_FRAGMENT", "u8"),
    ("TND_POLICER_", "u16"),
    ("TND_LAG_", "u16"),
    ("TND_LAG_MAX_MEMBERS", "usize"),
    ("TND_VID_ANY", "u16"),
    ("TND_ACL_VID_NONE", "u16"),
    ("TND_CAGE_", "u16"),
];

#[derive(Debug)]
struct Callbacks;

impl ParseCallbacks for Callbacks {
    fn int_macro(&self, name: &str, _value: i64) -> Option<IntKind> {
        let (_, width) = MACRO_WIDTH
            .iter()
            .filter(|(prefix, _)| name.starts_with(prefix))
            .max_by_key(|(prefix, _)| prefix.len())?;
        Some(IntKind::Custom {
            name: width,
            is_signed: false,
        })
    }

    fn add_derives(&self, _info: &DeriveInfo<'_>) -> Vec<String> {
        ["FromBytes", "IntoBytes", "Immutable", "KnownLayout"]
            .iter()
            .map(|d| format!("zerocopy::{d}"))
            .collect()
    }

    /// The blocklisted types are the kernel's integers.
    fn blocklisted_type_implements_trait(
        &self,
        _name: &str,
        _derive: DeriveTrait,
    ) -> Option<ImplementsTrait> {
        Some(ImplementsTrait::Yes)
    }

    /// kernel-doc's `@field:` becomes a list in rustdoc.
    fn process_comment(&self, comment: &str) -> Option<String> {
        let mut out = String::new();
        for line in comment.lines() {
            let line = line.trim().trim_start_matches("struct ").trim();
            match line.strip_prefix('@').and_then(|l| l.split_once(':')) {
                Some((field, text)) if !field.contains(' ') => {
                    let _ = writeln!(out, "- `{field}`:{text}");
                }
                _ => {
                    let _ = writeln!(out, "{line}");
                }
            }
        }
        Some(out.replace('[', "\\[").replace(']', "\\]"))
    }
}

fn abi_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The names of all structs in the generated text, in order.
fn structs(text: &str) -> Vec<&str> {
    text.lines()
        .filter_map(|l| l.strip_prefix("pub struct "))
        .filter_map(|l| l.split([' ', '{', '(']).next())
        .collect()
}

/// (`struct`, None, size) and (`struct`, Some(field), offset), as clang laid them out.
fn layout(text: &str) -> Result<Vec<(String, Option<String>, usize)>> {
    // bindgen's assertions may be wrapped by rustfmt: look at them without line ends
    let flat: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut rows = Vec::new();
    for piece in flat.split("[\"").skip(1) {
        let Some((label, rest)) = piece.split_once("\"]") else {
            continue;
        };
        let number = || -> Result<usize> {
            let expr = rest.split_once(';').map_or(rest, |(e, _)| e);
            let digits = expr
                .rsplit_once("- ")
                .map(|(_, n)| n.trim_end_matches(']'))
                .and_then(|n| n.trim().strip_suffix("usize"))
                .with_context(|| format!("unexpected layout assertion: {expr}"))?;
            Ok(digits.parse()?)
        };
        if let Some(name) = label.strip_prefix("Size of ") {
            rows.push((name.to_owned(), None, number()?));
        } else if let Some(path) = label.strip_prefix("Offset of field: ") {
            let (name, field) = path.split_once("::").context("field without a struct")?;
            rows.push((name.to_owned(), Some(field.to_owned()), number()?));
        }
    }
    Ok(rows)
}

fn generate() -> Result<String> {
    let header = abi_dir().join("tandem.h");
    let bindings = bindgen::Builder::default()
        .header(header.to_string_lossy())
        .allowlist_item("(tnd|TND)_.*")
        .blocklist_type("__(u|le|s|be)[0-9]+")
        .default_enum_style(bindgen::EnumVariation::Consts)
        .prepend_enum_name(false)
        .layout_tests(true)
        .derive_default(false)
        .derive_eq(true)
        .derive_partialeq(true)
        .derive_hash(true)
        .generate_comments(true)
        .clang_arg("-fparse-all-comments")
        .disable_header_comment()
        .parse_callbacks(Box::new(Callbacks))
        .generate()
        .context("bindgen can't read abi/tandem.h (is libclang installed?)")?;
    let mut body = bindings.to_string();

    for (c, rust) in [
        ("__le16", "u16"),
        ("__le32", "u32"),
        ("__le64", "u64"),
        ("__u8", "u8"),
    ] {
        body = body.replace(c, rust);
    }
    for (name, width) in ENUM_WIDTH {
        let wide = format!("pub type {name} = ::std::os::raw::c_uint;");
        if !body.contains(&wide) {
            bail!("enum {name} is gone from abi/tandem.h: correct ENUM_WIDTH in abi/gen");
        }
        body = body.replace(&wide, &format!("pub type {name} = {width};"));
    }
    body = body.replace(" = ::std::os::raw::c_uint;", " = u16;");
    if body.contains("#[repr(packed") {
        bail!("a struct of abi/tandem.h is packed; lay it out with explicit reserved fields");
    }

    let rows = layout(&body)?;
    let mut out = String::from(
        "// Generated by abi/gen from abi/tandem.h: do not edit. `cargo run -p tandem-abi-gen` writes it.\n\n",
    );
    out.push_str(&body);
    for name in structs(&body) {
        let _ = write!(
            out,
            "\nimpl Default for {name} {{\n    fn default() -> Self {{\n        zerocopy::FromZeros::new_zeroed()\n    }}\n}}\n"
        );
    }
    out.push_str(
        "\n/// Sizes (`None`) and field offsets of every struct, as this compiler lays them out.\n",
    );
    out.push_str("pub const LAYOUT: &[(&str, Option<&str>, usize)] = &[\n");
    for (name, field, _) in &rows {
        let _ = match field {
            None => writeln!(
                out,
                "    (\"{name}\", None, ::std::mem::size_of::<{name}>()),"
            ),
            Some(f) => writeln!(
                out,
                "    (\"{name}\", Some(\"{f}\"), ::std::mem::offset_of!({name}, {f})),"
            ),
        };
    }
    out.push_str("];\n");
    Ok(out)
}

/// Formats with rustfmt, as the rest of the tree is.
fn rustfmt(text: &str) -> Result<String> {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let mut child = Command::new("rustfmt")
        .args(["--edition", "2024", "--emit", "stdout"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("rustfmt is needed to write the file")?;
    let mut stdin = child.stdin.take().context("no pipe to rustfmt")?;
    // rustfmt reads all of its input before it writes: no deadlock with one thread
    stdin.write_all(text.as_bytes())?;
    drop(stdin);
    let out = child.wait_with_output()?;
    if !out.status.success() {
        bail!("rustfmt refuses the generated text");
    }
    Ok(String::from_utf8(out.stdout)?)
}

fn layout_def(text: &str) -> Result<String> {
    let mut out = String::from(
        "/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */\n\
         /* Sizes and offsets of abi/tandem.h. Lines are added when an object grows, never changed. */\n",
    );
    for (name, field, n) in layout(text)? {
        let _ = match field {
            None => writeln!(out, "SIZE({name}, {n})"),
            Some(f) => writeln!(out, "OFFSET({name}, {f}, {n})"),
        };
    }
    Ok(out)
}

fn run() -> Result<()> {
    let mode = std::env::args().nth(1);
    let path = abi_dir().join("rust/src/generated.rs");
    let text = rustfmt(&generate()?)?;
    match mode.as_deref() {
        None => std::fs::write(&path, text).with_context(|| format!("writing {}", path.display())),
        Some("--layout") => {
            let path = abi_dir().join("tests/layout.def");
            std::fs::write(&path, layout_def(&text)?)
                .with_context(|| format!("writing {}", path.display()))
        }
        Some("--check") => {
            let squeeze = |s: &str| s.split_whitespace().collect::<String>();
            let present = std::fs::read_to_string(&path).unwrap_or_default();
            if squeeze(&present) != squeeze(&text) {
                bail!(
                    "abi/rust/src/generated.rs is not what abi/tandem.h says: run `cargo run -p tandem-abi-gen` and commit"
                );
            }
            Ok(())
        }
        Some(other) => bail!("unknown option {other}: use none, --check or --layout"),
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("tandem-abi-gen: {e:#}");
            ExitCode::FAILURE
        }
    }
}
