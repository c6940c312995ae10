//! What a unit of work is worth here: `cargo run --release -p tandem-firmware --example units`.
//!
//! ns per unit of `tandem_firmware::turn` for what the constants there weigh: each should be near the others. The least of
//! seven runs each.

use std::time::Instant;
use tandem_abi::raw::*;
use tandem_firmware::{CplSink, Firmware, Processor, Profile, turn};
use tandem_pipeline::entry::{Action, FdbValue};
use tandem_tables::exact::Key;
use zerocopy::IntoBytes;

type Failure = Box<dyn std::error::Error>;
const ADDRESSES: u32 = 200_000;

struct Nowhere;

impl CplSink for Nowhere {
    fn room(&mut self, _: usize, _: u32) -> bool {
        true
    }
    fn complete(&mut self, _: usize, _: &tnd_cmd, cpl: &tnd_cpl, _: &[u8]) {
        assert_eq!(cpl.status, TND_ST_OK);
    }
}

fn vlan(fid: u16) -> tnd_vlan {
    tnd_vlan {
        struct_size: size_of::<tnd_vlan>() as u16,
        fid,
        ..Default::default()
    }
}

/// A chip with addresses in domain 1, where `kept` of them are.
fn chip(profile: &Profile, kept: u32) -> Result<Firmware, Failure> {
    let mut fw = Firmware::new(profile.clone())?;
    for fid in [1, 2] {
        let create = tnd_cmd {
            op: TND_OP_CREATE,
            cls: TND_CLS_VLAN,
            ..Default::default()
        };
        fw.execute(&create, vlan(fid).as_bytes(), &mut Vec::new(), 0);
    }
    let value = FdbValue {
        port: 1,
        flags: TND_FDB_LEARNED,
        action: Action::Forward,
        set: None,
    };
    let key = |i: u32| {
        let [a, b, c, d] = i.to_be_bytes();
        let mac = [2, 0, a, b, c, d];
        Key::Mac { fid: 1, mac }
    };
    for i in 0..ADDRESSES {
        fw.state.exact.insert(key(i), value.pack(), 0)?;
    }
    for i in kept..ADDRESSES {
        fw.state.exact.remove(&key(i));
    }
    Ok(fw)
}

/// ns per unit of commands that a processor takes, and the median turn in µs.
fn units(fw: &mut Firmware, cmds: &[(tnd_cmd, Vec<u8>)]) -> Result<(f64, f64), Failure> {
    let mut p = Processor::new(false);
    p.reset(fw, 1, 7);
    let (mut ns, mut all, mut turns, mut next) = (0.0, 0, Vec::new(), 0);
    loop {
        while p.room(0) > 0 && next < cmds.len() {
            let (c, body) = &cmds[next];
            let seq = next as u32;
            p.submit(
                fw,
                0,
                &tnd_cmd {
                    seq,
                    epoch: 7,
                    ..*c
                },
                body,
                0,
            )?;
            next += 1;
        }
        let t = Instant::now();
        let ran = p.run(fw, 0, turn::TURN, &mut Nowhere);
        let took = t.elapsed().as_nanos() as f64;
        (ns, all) = (ns + took, all + ran.units);
        turns.push(took / 1e3);
        if p.pending() == 0 && next == cmds.len() {
            turns.sort_by(f64::total_cmp);
            return Ok((ns / all as f64, turns[turns.len() / 2]));
        }
    }
}

fn main() -> Result<(), Failure> {
    let profile = Profile::builtin("scale")?;
    let cmd = |op, cls| tnd_cmd {
        op,
        cls,
        out_size: 1 << 20,
        ..Default::default()
    };
    let route = |i: u32| {
        let mut addr = [0; 16];
        addr[..4].copy_from_slice(&(i << 8).to_be_bytes());
        tnd_route {
            struct_size: size_of::<tnd_route>() as u16,
            family: TND_AF_INET,
            prefix_len: 24,
            action: TND_ACT_TRAP,
            addr,
            ..Default::default()
        }
    };
    let routes = (0..100_000).map(|i| (cmd(TND_OP_CREATE, TND_CLS_ROUTE), route(i)));
    let delete = |fid| {
        (
            cmd(TND_OP_DELETE, TND_CLS_VLAN),
            vlan(fid).as_bytes().to_vec(),
        )
    };
    let dumps = vec![(cmd(TND_OP_DUMP, TND_CLS_FDB), Vec::new()); 100];
    let cases: [(&str, u32, Vec<_>); 4] = [
        (
            "100,000 routes created",
            1,
            routes.map(|(c, r)| (c, r.as_bytes().to_vec())).collect(),
        ),
        (
            "a domain of 200,000 addresses deleted",
            ADDRESSES,
            vec![delete(1)],
        ),
        ("100 dumps of a full table", ADDRESSES, dumps.clone()),
        ("100 dumps of an empty one", 1, dumps),
    ];
    for (what, kept, cmds) in cases {
        let mut least = (f64::INFINITY, f64::INFINITY);
        for _ in 0..7 {
            let (unit, turn) = units(&mut chip(&profile, kept)?, &cmds)?;
            least = (least.0.min(unit), least.1.min(turn));
        }
        println!(
            "{what}: {:.2} ns a unit, median turn {:.0} µs",
            least.0, least.1
        );
    }
    Ok(())
}
