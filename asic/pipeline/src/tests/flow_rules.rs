//! Rules of flow ports: what they count, police and mirror, what of super-frames, and that a question takes nothing of it.

use tandem_abi::raw;
use tandem_packet::Gso;

use super::flows::*;
use crate::entry::Action;
use crate::state::{AclBind, AclStage, Mirror, State};
use crate::testkit::Answer::{Cpu, Drop, Tx};
use crate::testkit::*;
use crate::{DropReason, Offload};

/// Counters and policers as at the stage of the port; a rule that traps counts nothing, which its reader does, but for what its policer drops.
#[test]
fn what_rules_count() {
    let mut s = flows(3, raw::TND_PORT_FLOWS_DROP);
    list(&mut s);
    s.acl.add_counter(7);
    s.acl.set_policer(3, raw::TND_POLICER_PACKETS, 1, 4);
    let counted = |e| raw::tnd_acl_entry { counter: 7, ..e };
    let hits = |s: &State| s.acl.counter(7).unwrap().packets;
    for (e, count) in [
        (rule(1, raw::TND_ACL_DROP), 1),
        (to_ports(&[2]), 2),
        // dropped on its way out: the rule has matched
        (to_ports(&[1]), 3),
        (rule(1, raw::TND_ACL_PERMIT), 4),
        (rule(1, raw::TND_ACL_TRAP), 4),
    ] {
        put(&mut s, counted(e));
        run(&mut s, 1, &talk());
        assert_eq!(hits(&s), count, "{}", e.action);
    }
    // the FDB says CPU: the chip has not dealt with it
    fdb(&mut s, UNTAGGED, mac(2), 0, Action::Trap, 0);
    put(&mut s, counted(rule(1, raw::TND_ACL_PERMIT)));
    assert_eq!(run(&mut s, 1, &talk()), Cpu(FLOW));
    assert_eq!(hits(&s), 4);
    // also what a rule hands to the CPU because it can not do it: no tag to write into, a copy that would meet a list
    let writes = raw::tnd_acl_entry {
        flags: raw::TND_ACL_SET_VID,
        vid: 99,
        ..to_ports(&[2])
    };
    s.acl.set_mirror(Mirror {
        id: 2,
        port: 3,
        ..Mirror::default()
    });
    s.acl.add_table(5, AclStage::Egress);
    let bind = AclBind { table: 5, flags: 0 };
    s.set_acl_bind(3, AclStage::Egress, bind).unwrap();
    let copied = raw::tnd_acl_entry {
        mirror: 2,
        ..to_ports(&[2])
    };
    for (e, answer, counts) in [
        (to_ports(&[2]), Tx(vec![2]), 4),
        (rule(1, raw::TND_ACL_TRAP), Cpu(FLOW), 0),
        (writes, Cpu(FLOW), 0),
        (copied, Cpu(FLOW), 0),
    ] {
        s.acl.remove_policer(3);
        s.acl.set_policer(3, raw::TND_POLICER_PACKETS, 1, 4);
        put(
            &mut s,
            raw::tnd_acl_entry {
                policer: 3,
                ..counted(e)
            },
        );
        let before = hits(&s);
        for _ in 0..4 {
            assert_eq!(run(&mut s, 1, &talk()), answer);
        }
        assert_eq!(hits(&s), before + counts);
        // what exceeds is the chip's, and counts
        assert_eq!(run(&mut s, 1, &talk()), Drop(DropReason::AclPoliced));
        assert_eq!(hits(&s), before + counts + 1);
    }
}

#[test]
fn what_rules_mirror() {
    let mut s = flows(4, 0);
    list(&mut s);
    s.acl.set_mirror(Mirror {
        id: 2,
        port: 4,
        ..Mirror::default()
    });
    let copied = |e| raw::tnd_acl_entry { mirror: 2, ..e };
    let sets = raw::tnd_acl_entry {
        flags: raw::TND_ACL_SET_VID,
        vid: 99,
        ..to_ports(&[2])
    };
    put(&mut s, copied(sets));
    let f = tagged(talk(), VLAN, 10);
    let (out, _) = run_with(&mut s, 1, &f, Offload::NONE, 1);
    let got: Vec<_> = out
        .tx
        .iter()
        .map(|(port, b, _)| (*port, b.clone()))
        .collect();
    assert_eq!(got, [(4, f.clone()), (2, tagged(talk(), VLAN, 99))]);
    put(&mut s, copied(rule(1, raw::TND_ACL_TRAP)));
    assert_eq!(run(&mut s, 1, &f), Cpu(FLOW), "no copy");
    // a copy that the analyser's list would have a say in
    s.acl.add_table(5, AclStage::Egress);
    let bind = AclBind { table: 5, flags: 0 };
    s.set_acl_bind(4, AclStage::Egress, bind).unwrap();
    put(&mut s, copied(to_ports(&[2])));
    assert_eq!(run(&mut s, 1, &f), Cpu(FLOW));
}

/// A super-frame counts as its packets, and meets a port's MTU as each of them.
#[test]
fn super_frames() {
    let mut s = flows(4, raw::TND_PORT_FLOWS_DROP);
    let mut bytes = Vec::new();
    etherparse::PacketBuilder::ethernet2(mac(1), mac(2))
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .tcp(1, 2, 3, 4)
        .write(&mut bytes, &vec![1; 14_600])
        .unwrap();
    let bytes = tagged(bytes, VLAN, 10);
    let off = Offload {
        gso: Some(Gso::Tcp4),
        gso_size: 1460,
        hdr_len: 58,
        ..Offload::NONE
    };
    let packets = 10;
    let f = |s: &mut State| run_with(s, 1, &bytes, off, 1_000_000_000);
    let sent = |s: &State, port: u16| s.counters.ports[usize::from(port)].tx.packets;
    // to a set: each port sends all packets; one with a smaller MTU none of them
    let small = crate::state::PortConfig {
        mtu: 1495,
        ..s.port(4).unwrap().config
    };
    s.set_port(4, small).unwrap();
    to_set(&mut s, 10, mac(2), 7, &[1, 2, 3, 4]);
    assert_eq!(f(&mut s).1, Tx(vec![2, 3]));
    assert_eq!([2, 3, 4].map(|p| sent(&s, p)), [packets, packets, 0]);
    // a rule's counter, policer and tag
    list(&mut s);
    s.acl.add_counter(7);
    s.acl
        .set_policer(3, raw::TND_POLICER_PACKETS, 1, 2 * packets);
    let writes = raw::tnd_acl_entry {
        flags: raw::TND_ACL_SET_VID,
        vid: 99,
        counter: 7,
        policer: 3,
        ..to_ports(&[2, 3])
    };
    put(&mut s, writes);
    let written = {
        let mut b = bytes.clone();
        b[14..16].copy_from_slice(&99u16.to_be_bytes());
        b
    };
    for _ in 0..2 {
        let (out, answer) = f(&mut s);
        assert_eq!(answer, Tx(vec![2, 3]));
        assert!(out.tx.iter().all(|(_, b, o)| (b, *o) == (&written, off)));
    }
    assert_eq!(s.acl.counter(7).unwrap().packets, 2 * packets);
    assert_eq!(f(&mut s).1, Drop(DropReason::AclPoliced));
    // and to the CPU
    put(&mut s, rule(1, raw::TND_ACL_TRAP));
    let trapped = |s: &State| s.counters.ports[1].trapped;
    let before = trapped(&s);
    assert_eq!(f(&mut s).1, Cpu(FLOW));
    assert_eq!(trapped(&s) - before, packets);
}

/// Nor does it take a policer's only packet, count at a rule, or move a session on to the frame that it copies.
#[test]
fn traces_take_nothing_of_rules() {
    let mut s = flows(4, 0);
    list(&mut s);
    s.acl.add_counter(7);
    s.acl.set_mirror(Mirror {
        id: 2,
        port: 4,
        rate: 2,
        ..Mirror::default()
    });
    let with = |e| raw::tnd_acl_entry {
        policer: 3,
        counter: 7,
        mirror: 2,
        ..e
    };
    let asks = |s: &mut State| drop(crate::trace::trace(s, &talk(), 1, 1_000_000_000));
    for (e, answer) in [
        (rule(1, raw::TND_ACL_TRAP), Cpu(FLOW)),
        (to_ports(&[2]), Tx(vec![2])),
    ] {
        s.acl.remove_policer(3);
        s.acl.set_policer(3, raw::TND_POLICER_PACKETS, 1, 1);
        put(&mut s, with(e));
        for _ in 0..3 {
            asks(&mut s);
        }
        assert_eq!(run(&mut s, 1, &talk()), answer);
        let (packets, exceeded) = (
            s.acl.counter(7).unwrap().packets,
            Drop(DropReason::AclPoliced),
        );
        // nor is what would be dropped counted
        asks(&mut s);
        assert_eq!(s.acl.counter(7).unwrap().packets, packets);
        assert_eq!(run(&mut s, 1, &talk()), exceeded);
    }
    // the session has seen one frame of two
    let session = s.acl.mirror(2).unwrap();
    assert_eq!((session.skipped, session.packets), (1, 0));
}
