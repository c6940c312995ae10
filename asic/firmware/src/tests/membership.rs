//! Memberships cost what they change, however many there are. Work is counted, not time.

use super::*;
use raw::*;

/// Positions that a membership may look at or move beyond its own: the lines of its domain behind it, one per port.
const MOST: u64 = 64;

fn execute(f: &mut Firmware, op: u16, m: &tnd_vlan_member) -> u64 {
    let before = f.state.work.done();
    let mut out = Vec::new();
    let cpl = f.execute(&cmd(op, TND_CLS_VLAN_MEMBER), m.as_bytes(), &mut out, 1);
    assert_eq!(cpl.status, TND_ST_OK, "{op} of {m:?}");
    f.state.work.done() - before
}

fn domains(f: &mut Firmware, last: u16) {
    for fid in 1..=last {
        assert_eq!(create(f, TND_CLS_VLAN, &vlan(fid)), TND_ST_OK);
    }
}

/// 32 ports of 4,094 VLANs: set one by one, changed, read, and taken away, on a chip that has room for 48.
#[test]
fn all_vlans_on_32_ports() {
    let f = &mut chip("scale");
    domains(f, 4094);
    let all = || (1..=32u16).flat_map(|port| (1..=4094u16).map(move |vid| member(vid, port, vid)));
    let mut most = 0;
    for m in all() {
        most = most.max(execute(f, TND_OP_CREATE, &m));
    }
    assert_eq!(pool(f, PoolId::VlanMember).used, 131_008);
    f.check_accounting().unwrap();
    assert!(most <= MOST, "one CREATE looked at {most} positions");

    for m in all() {
        let untagged = tnd_vlan_member {
            flags: TND_MEMBER_UNTAGGED,
            ..m
        };
        most = most.max(execute(f, TND_OP_UPDATE, &untagged));
    }
    assert!(most <= MOST, "one UPDATE looked at {most} positions");

    // every call goes on where the last one ended
    let before = f.state.work.done();
    let told: Vec<tnd_vlan_member> = dump(f, TND_OP_DUMP, TND_CLS_VLAN_MEMBER, 1 << 16);
    let walked = f.state.work.done() - before;
    assert_eq!(told.len(), 131_008);
    assert!(told.iter().all(|m| m.flags == TND_MEMBER_UNTAGGED));
    assert!(
        walked <= 131_008 * (turn::RECORD + 2),
        "a DUMP in many calls looked at {walked}"
    );

    let full = op(f, TND_OP_DELETE, TND_CLS_VLAN, &vlan(7));
    assert_eq!(full.status, TND_ST_IN_USE);
    for m in all() {
        most = most.max(execute(f, TND_OP_DELETE, &m));
    }
    assert!(most <= MOST, "one DELETE looked at {most} positions");
    assert_eq!(pool(f, PoolId::VlanMember).used, 0);
    for fid in 1..=4094 {
        let gone = op(f, TND_OP_DELETE, TND_CLS_VLAN, &vlan(fid));
        assert_eq!(gone.status, TND_ST_OK);
    }
    f.check_accounting().unwrap();
}

/// A driver that attaches again and confirms nothing: each slice of the sweep goes on where the last one ended.
#[test]
fn a_sweep_of_memberships_walks_them_once() {
    let f = &mut chip("scale");
    domains(f, 1000);
    for port in 1..=32 {
        for vid in 1..=1000 {
            execute(f, TND_OP_CREATE, &member(vid, port, vid));
        }
    }
    assert_eq!(
        run(f, &cmd(TND_OP_BEGIN_RESYNC, 0), &[]).0.status,
        TND_ST_OK
    );
    let before = f.state.work.done();
    while !f.sweep_slice(turn::TURN) {}
    let walked = f.state.work.done() - before;
    assert_eq!(run(f, &cmd(TND_OP_END_RESYNC, 0), &[]).0.result, 33_000);
    let most = 32 * 4096 + 33_000 * (turn::REMOVE + 32);
    assert!(walked <= most, "the sweep looked at {walked}");
}
