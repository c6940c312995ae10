//! What memberships cost: `cargo run --release -p tandem-firmware --example members -- [PORTS] [VLANS]`.
//!
//! All VLANs on all ports of the profile `scale`, one command each: ns per command for the first and the last tenth and
//! over all, each the least of seven chips (other processes only ever add time).

use std::time::Instant;
use tandem_abi::raw::*;
use tandem_firmware::{Firmware, Profile};
use zerocopy::IntoBytes;

fn create(fw: &mut Firmware, cls: u16, body: &[u8], out: &mut Vec<u8>) {
    let cmd = tnd_cmd {
        op: TND_OP_CREATE,
        cls,
        ..Default::default()
    };
    assert_eq!(fw.execute(&cmd, body, out, 0).status, TND_ST_OK);
}

/// ns per command: first tenth, last tenth, all.
fn chip(profile: &Profile, ports: u16, vlans: u16) -> Result<[f64; 3], Box<dyn std::error::Error>> {
    let mut fw = Firmware::new(profile.clone())?;
    let out = &mut Vec::new();
    for fid in 1..=vlans {
        let v = tnd_vlan {
            struct_size: size_of::<tnd_vlan>() as u16,
            fid,
            ..Default::default()
        };
        create(&mut fw, TND_CLS_VLAN, v.as_bytes(), out);
    }
    let n = u64::from(ports) * u64::from(vlans);
    let (mut i, mut marks) = (0, vec![Instant::now()]);
    for port in 1..=ports {
        for vid in 1..=vlans {
            let m = tnd_vlan_member {
                struct_size: size_of::<tnd_vlan_member>() as u16,
                fid: vid,
                port,
                vid,
                ..Default::default()
            };
            create(&mut fw, TND_CLS_VLAN_MEMBER, m.as_bytes(), out);
            i += 1;
            if i == n / 10 || i == n - n / 10 {
                marks.push(Instant::now());
            }
        }
    }
    marks.push(Instant::now());
    let ns = |from: usize, to: usize, commands: u64| {
        let took = marks[to].duration_since(marks[from]);
        took.as_nanos() as f64 / commands as f64
    };
    Ok([ns(0, 1, n / 10), ns(2, 3, n / 10), ns(0, 3, n)])
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<u16> = std::env::args().skip(1).flat_map(|a| a.parse()).collect();
    let ports = args.first().copied().unwrap_or(32);
    let vlans = args.get(1).copied().unwrap_or(4094);
    let profile = Profile::builtin("scale")?;
    let mut least = [f64::INFINITY; 3];
    for _ in 0..7 {
        let run = chip(&profile, ports, vlans)?;
        least = std::array::from_fn(|i| least[i].min(run[i]));
    }
    println!(
        "{ports} ports x {vlans} VLANs: first tenth {:.0} ns, last tenth {:.0} ns, all {:.0} ns a command",
        least[0], least[1], least[2]
    );
    Ok(())
}
