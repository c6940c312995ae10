//! Replays `vectors/*.json`: operations on the kernel's table, and the exact commands that must follow, in order. Any
//! other implementation of the rule is held to the same files. `UPDATE_VECTORS=1` writes what this one does; read the
//! difference before you believe it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
mod sim;

use sim::{Answer, Command, Sim};
use tandem_cover::{Bits, V4, V6};

fn prefix<B: Bits>(text: &str) -> (B, u8) {
    let (addr, len) = text.split_once('/').expect("a prefix");
    let mut bytes = [0u8; 16];
    match addr.parse().expect("an address") {
        IpAddr::V4(a) => bytes[..4].copy_from_slice(&a.octets()),
        IpAddr::V6(a) => bytes = a.octets(),
    }
    (B::from_bytes(&bytes), len.parse().expect("a length"))
}

fn step<B: Bits>(sim: &mut Sim<B>, op: &str) -> Vec<Command<B>> {
    let words: Vec<&str> = op.split(' ').collect();
    match words[..] {
        ["add", p, "trap"] => {
            let (b, l) = prefix(p);
            sim.add(b, l, Answer::Trap)
        }
        ["add", p, "via", n] => {
            let (b, l) = prefix(p);
            sim.add(b, l, Answer::Via(n.parse().unwrap()))
        }
        ["remove", p] => {
            let (b, l) = prefix(p);
            sim.remove(b, l)
        }
        ["resize", n] => sim.resize(n.parse().unwrap()),
        _ => panic!("what is \"{op}\"?"),
    }
}

fn replay<B: Bits>(case: &Value) -> Value {
    let number = |k: &str| case[k].as_u64().expect(k) as usize;
    let mut sim: Sim<B> = Sim::new(number("slots"), number("units"));
    let mut steps = Vec::new();
    for s in case["steps"].as_array().expect("steps") {
        let op = s["op"].as_str().expect("op");
        let commands: Vec<String> = step(&mut sim, op).iter().map(ToString::to_string).collect();
        steps.push(json!({ "op": op, "commands": commands }));
    }
    Value::Array(steps)
}

fn files() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
    let mut all: Vec<PathBuf> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    all.retain(|p| p.extension().is_some_and(|e| e == "json"));
    all.sort();
    assert!(!all.is_empty());
    all
}

#[test]
fn every_vector_gives_its_commands() {
    for path in files() {
        let mut case: Value =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let steps = match case["family"].as_u64() {
            Some(4) => replay::<V4>(&case),
            Some(6) => replay::<V6>(&case),
            f => panic!("{}: family {f:?}", path.display()),
        };
        if std::env::var_os("UPDATE_VECTORS").is_some() {
            case["steps"] = steps;
            std::fs::write(&path, serde_json::to_string_pretty(&case).unwrap() + "\n").unwrap();
            continue;
        }
        for (got, want) in steps
            .as_array()
            .unwrap()
            .iter()
            .zip(case["steps"].as_array().unwrap())
        {
            assert_eq!(got, want, "{}", path.display());
        }
    }
}
