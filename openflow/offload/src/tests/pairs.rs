// SPDX-License-Identifier: Apache-2.0
//! Flows that write: which stand as a pair, how that comes and goes, and what is told of the others.
use super::model::{Answer, PRESENT, World};
use super::property::{ops, packets, play};
use crate::tables::{self, MacLookup};
use crate::{
    Act, Chain, Change, Flow, NotPair, Offload, PortMask, Rewrite, Share, Stand, Tagging, Wanted,
    Why, Write,
};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use std::collections::BTreeMap;
use tandem_openflow::{Field, Oxm};

const PLAIN: Rewrite = Rewrite {
    tag: Tagging::Stays,
    vid: None,
    pcp: None,
    dscp: None,
};

fn out(port: u8, rewrite: Rewrite) -> Wanted {
    let ports = PortMask::one(port);
    Wanted::Act(Act::Out { ports, rewrite })
}

fn vid(port: u8, vid: u16) -> Wanted {
    let vid = Some(vid);
    out(port, Rewrite { vid, ..PLAIN })
}

fn flow(priority: u16, fields: &[(Field, u128)], wanted: Wanted) -> Flow {
    Flow {
        priority,
        fields: fields.iter().map(|(f, v)| Oxm::exact(*f, *v)).collect(),
        wanted,
        idle: false,
        counted: false,
        traffic: 1,
    }
}

const VLAN1: (Field, u128) = (Field::VlanVid, PRESENT | 1);
const NO_TAG: (Field, u128) = (Field::VlanVid, 0);
const PORT1: (Field, u128) = (Field::InPort, 1);
const IP4: (Field, u128) = (Field::EthType, 0x0800);

/// The writes in short; of rows it is kept which are a group's.
#[derive(Default)]
struct Groups(BTreeMap<u32, u8>);

impl Groups {
    fn said(&mut self, writes: &[Write]) -> Vec<String> {
        let mut all = Vec::new();
        for w in writes {
            if let Write::GroupAdd { at, group, .. } = w {
                self.0.insert(*at, *group);
            }
            all.push(said(w, &self.0));
            if let Write::RowDel { at } = w {
                self.0.remove(at);
            }
        }
        all
    }
}

fn said(w: &Write, groups: &BTreeMap<u32, u8>) -> String {
    let act = |a: &Act| match a {
        Act::Cpu => "cpu".to_owned(),
        Act::Drop => "drop".to_owned(),
        Act::Out { ports, .. } => format!("{:?}", ports.ports().collect::<Vec<_>>()),
    };
    match w {
        Write::GroupAdd { group, .. } => format!("+group {group}"),
        Write::ClassAdd { group, writes, .. } => format!("+class {group} {:?}", writes.vid),
        Write::ClassAct { group, writes, .. } => format!("class {group} {:?}", writes.vid),
        Write::ClassDel { group, .. } => format!("-class {group}"),
        Write::RowAct { at, act: a } => match groups.get(at) {
            Some(group) => format!("group {group} {}", act(a)),
            None => format!("row {}", act(a)),
        },
        Write::RowDel { at } if groups.contains_key(at) => format!("-group {}", groups[at]),
        Write::RowAdd { act: a, .. } => format!("+row {}", act(a)),
        Write::RowDel { .. } => "-row".to_owned(),
        Write::MacPut { act: a, .. } => format!("mac {}", act(a)),
        other => format!("{other:?}"),
    }
}

#[test]
fn a_pair_comes_changes_and_goes() {
    let mut o = Offload::new(tables::vsc9953(MacLookup::Vlan));
    let mut groups = Groups::default();
    let w = o.add(1, flow(5, &[PORT1, VLAN1], vid(2, 7)));
    assert_eq!(
        groups.said(&w),
        ["+group 1", "+class 1 Some(7)", "group 1 [2]"]
    );
    let rows: Vec<Act> = o.rows(1).into_iter().map(|(_, act)| act).collect();
    assert_eq!(rows, [Act::port(2)]);
    assert_eq!(
        (o.group(1), o.usage().class_used, o.usage().acl_used),
        (Some(1), 2, 1)
    );
    assert_eq!(
        o.why(1).unwrap().to_string(),
        "in IS1, 2 lines, which writes, and IS2, for its group 1"
    );
    assert_eq!(o.why(1).unwrap().needs(), None);
    // Where it goes to, or what is written, is one write; both are not
    let mut to = |o: &mut Offload, w| groups.said(&o.modify(1, w, false, false));
    assert_eq!(to(&mut o, vid(3, 7)), ["group 1 [3]"]);
    assert_eq!(to(&mut o, vid(3, 8)), ["class 1 Some(8)"]);
    assert_eq!(
        to(&mut o, vid(2, 9)),
        ["group 1 cpu", "class 1 Some(9)", "group 1 [2]"]
    );
    // What writes nothing needs none, and stands before the pair goes
    assert_eq!(
        to(&mut o, Wanted::Act(Act::port(2))),
        ["+row cpu", "-class 1", "-group 1", "row [2]"]
    );
    assert_eq!((o.group(1), o.usage().class_used), (None, 0));
    // And the other way round
    assert_eq!(
        to(&mut o, vid(2, 7)),
        [
            "row cpu",
            "+group 1",
            "+class 1 Some(7)",
            "-row",
            "group 1 [2]"
        ]
    );
    assert_eq!(groups.said(&o.remove(1)), ["-class 1", "-group 1"]);
    assert_eq!(o.usage().acl_used, 0);
}

#[test]
fn who_meets_it_in_front_keeps_it_out() {
    let mut o = Offload::new(tables::vsc9953(MacLookup::Vlan));
    let mut groups = Groups::default();
    groups.said(&o.add(1, flow(5, &[PORT1, VLAN1], vid(2, 7))));
    // What is behind does not matter: it never sees these packets
    o.add(2, flow(1, &[VLAN1], Wanted::Act(Act::port(3))));
    assert_eq!(o.flows[&1].state.stand, Stand::Pair);
    // Nor who meets none of them
    o.add(
        3,
        flow(9, &[(Field::VlanVid, PRESENT | 2)], Wanted::Act(Act::Drop)),
    );
    assert_eq!(o.flows[&1].state.stand, Stand::Pair);
    let w = o.add(4, flow(9, &[IP4], Wanted::Act(Act::port(4))));
    let all = ["+row cpu", "+row cpu", "-class 1", "-group 1", "row [4]"];
    assert_eq!(groups.said(&w), all);
    let why = o.why(1).unwrap();
    assert_eq!(
        why.to_string(),
        "software: the table does not do its action; trapped at its place, in IS2; IS1 would write it, but \
         flow 4 in front meets it, and sends or asks for the tag"
    );
    assert_eq!(
        why.needs().unwrap(),
        "that flow 4 in front goes, matches less, or neither sends nor asks for the tag"
    );
    let named = o.why(1).unwrap().named(|id| id + 100).to_string();
    assert!(named.contains("flow 104 in front"), "{named}");
    // Without a port it sends nothing
    o.modify(4, Wanted::Act(Act::Cpu), false, false);
    assert_eq!(o.flows[&1].state.stand, Stand::Pair);
    o.modify(4, Wanted::Act(Act::port(4)), false, false);
    assert_ne!(o.flows[&1].state.stand, Stand::Pair);
    o.remove(4);
    assert_eq!(o.flows[&1].state.stand, Stand::Pair);
}

/// What a controller has in front of all else: LLDP and ARP, which it wants to see, and drops.
#[test]
fn who_sends_nothing_is_in_front_of_it() {
    let mut w = World::new(tables::vsc9953(MacLookup::Vlan), packets());
    w.add(1, flow(5, &[PORT1, VLAN1], vid(4, 7)));
    let ether = |n| [(Field::EthType, n)];
    w.add(2, flow(9, &ether(0x0806), Wanted::Act(Act::Cpu)));
    w.add(3, flow(8, &ether(0x86dd), Wanted::Act(Act::Drop)));
    let stands = |w: &World, id: u32| w.offload.flows[&id].state.stand;
    assert_eq!(stands(&w, 1), Stand::Pair);
    // Each has its own row in front of that of the group, and what is dropped is
    for id in [2, 3] {
        assert!(matches!(stands(&w, id), Stand::Acl { .. }), "{id}");
    }
    let mut sum = (0, 0, 0);
    for p in packets() {
        if p.of(Field::InPort) != 1 || p.of(Field::VlanVid) != PRESENT | 1 {
            continue;
        }
        match w.device.answer(&p) {
            Answer::Cpu => sum.0 += 1,
            Answer::Drop => sum.1 += 1,
            Answer::Out(_, rewrite) => {
                assert_eq!(rewrite.vid, Some(7));
                sum.2 += 1;
            }
            Answer::Software => unreachable!(),
        }
    }
    assert_eq!(sum, (6, 6, 42));
    // A row for the tag would see another one
    w.add(4, flow(9, &[VLAN1, IP4], Wanted::Act(Act::Cpu)));
    assert_ne!(stands(&w, 1), Stand::Pair);
    w.remove(4);
    assert_eq!(stands(&w, 1), Stand::Pair);
}

/// A packet that is of a group for a moment longer does not meet a new row for its tag, and is not dropped by one behind that.
#[test]
fn what_comes_in_front_drops_nothing_before_the_pair_is_gone() {
    let mut w = World::new(tables::vsc9953(MacLookup::Vlan), packets());
    let add = |id, flow| Change::Add {
        id,
        flow,
        chain: Chain::default(),
    };
    let tag = Oxm::masked(Field::VlanVid, PRESENT, PRESENT);
    let mut guard = flow(
        9,
        &[(Field::EthDst, 0x0200_0000_0001)],
        Wanted::Act(Act::Cpu),
    );
    guard.fields.push(tag);
    w.add(1, flow(3, &[VLAN1], vid(3, 7)));
    let drop = flow(5, &[IP4], Wanted::Act(Act::Drop));
    w.batch(vec![add(2, drop), add(3, guard)]);
    assert_ne!(w.offload.flows[&1].state.stand, Stand::Pair);
    w.batch(vec![Change::Remove { id: 2 }, Change::Remove { id: 3 }]);
    assert_eq!(w.offload.flows[&1].state.stand, Stand::Pair);
}

/// One in front that has no row turns it.
#[test]
fn who_has_no_row_in_front_turns_it() {
    let mut w = World::new(tables::vsc9953(MacLookup::Vlan), packets());
    let from = |vlan, n| [vlan, IP4, (Field::EthSrc, n)];
    let vlan2 = (Field::VlanVid, PRESENT | 2);
    let busy = |traffic, f: Flow| Flow { traffic, ..f };
    w.add(1, flow(5, &from(VLAN1, 1), vid(2, 7)));
    w.add(2, busy(1000, flow(5, &from(vlan2, 2), vid(2, 7))));
    // Its rows would trap all of UDP
    let all = [IP4, (Field::EthSrc, 1), (Field::IpProto, 17)];
    w.add(3, flow(9, &all, Wanted::Act(Act::Cpu)));
    let stands = |w: &World, id: u32| w.offload.flows[&id].state.stand;
    assert_eq!(
        [1, 2, 3].map(|id| stands(&w, id)),
        [Stand::Pair, Stand::Pair, Stand::Costly]
    );
    let why = w.offload.why(1).unwrap();
    assert!(
        why.to_string()
            .ends_with("traps, because 1 flow in front that overlaps it is in software"),
        "{why}"
    );
    assert_eq!(w.offload.share(1), Some(Share::Nothing));
    assert_eq!(w.offload.share(2), Some(Share::Whole));
    w.remove(3);
    assert_eq!(w.offload.share(1), Some(Share::Whole));
}

#[test]
fn what_can_be_written_depends_on_the_match() {
    let tag = |tag| Rewrite { tag, ..PLAIN };
    let push = Rewrite {
        vid: Some(7),
        pcp: Some(0),
        ..tag(Tagging::Comes)
    };
    let pcp = Rewrite {
        pcp: Some(3),
        ..PLAIN
    };
    let dscp = Rewrite {
        dscp: Some(46),
        ..PLAIN
    };
    let pop = tag(Tagging::Goes);
    let to0 = Rewrite {
        vid: Some(0),
        ..PLAIN
    };
    let mut words = std::collections::BTreeSet::new();
    let yes = Ok(());
    let no_tag = Err(NotPair::Tag);
    for (fields, rewrite, is) in [
        (&[VLAN1][..], pop, yes.clone()),
        (&[NO_TAG], push, yes.clone()),
        (&[VLAN1], pcp, yes.clone()),
        (&[IP4], dscp, yes.clone()),
        (&[PORT1], pcp, no_tag.clone()),
        (&[PORT1], pop, no_tag.clone()),
        (&[VLAN1], push, Err(NotPair::HasTag)),
        (&[NO_TAG], pop, Err(NotPair::NoTag)),
        (&[NO_TAG], pcp, Err(NotPair::NoTag)),
        (&[PORT1], dscp, Err(NotPair::NotIp)),
        (&[VLAN1], to0, Err(NotPair::Written)),
        (&[NO_TAG], tag(Tagging::Comes), Err(NotPair::Written)),
        (
            &[VLAN1, IP4, (Field::IpEcn, 1)],
            pcp,
            Err(NotPair::Match(vec![Field::IpEcn])),
        ),
    ] {
        let mut o = Offload::new(tables::vsc9953(MacLookup::Vlan));
        o.add(1, flow(5, fields, out(2, rewrite)));
        let why = o.why(1).unwrap();
        match is {
            Ok(()) => assert!(matches!(why, Why::Pair { .. }), "{fields:?}: {why}"),
            Err(not) => {
                let Why::NoPair { not: told, .. } = &why else {
                    panic!("{fields:?}: {why}");
                };
                assert_eq!(*told, not, "{fields:?}");
                words.insert(told.to_string());
            }
        }
    }
    assert_eq!(words.len(), 6, "{words:?}");
    // A chip that classifies nothing, and one whose rows write by themselves
    let mut o = Offload::new(tables::tiny(MacLookup::Vlan));
    o.add(1, flow(5, &[VLAN1], out(2, pop)));
    assert_eq!(
        o.why(1).unwrap().to_string(),
        "software: it pushes or pops a tag; needs no entry, nothing behind it answers its packets"
    );
    o.add(2, flow(9, &[VLAN1], vid(2, 7)));
    assert!(matches!(o.why(2), Some(Why::Acl { .. })));
}

/// Who has most traffic has a pair; nobody else loses his answer.
#[test]
fn pairs_are_few() {
    let mut chip = tables::vsc9953(MacLookup::Vlan);
    if let Some(c) = &mut chip.class {
        (c.rows.size, c.groups) = (5, 3);
    }
    let mut w = World::new(chip, packets());
    let at = |port: u128| [(Field::InPort, port), VLAN1];
    for port in 1..=3 {
        w.add(port as u32, flow(5, &at(port), vid(4, 7)));
    }
    let pairs = |w: &World| -> Vec<u32> {
        (1..=3)
            .filter(|id| w.offload.group(*id).is_some())
            .collect()
    };
    assert_eq!(pairs(&w), [1, 2]);
    let why = w.offload.why(3).unwrap();
    assert!(
        why.to_string()
            .ends_with("IS1 would write it, but that is full: needs 2 lines, free 1 of 5"),
        "{why}"
    );
    assert_eq!(why.needs().unwrap(), "1 more lines that are free");
    w.measured(&[(3, 50), (2, 9), (1, 5)]);
    assert_eq!(pairs(&w), [2, 3]);
    w.resize_class(100);
    assert_eq!(pairs(&w), [1, 2, 3]);
    assert_eq!(w.offload.usage().groups_used, 3);
    w.add(
        4,
        flow(
            5,
            &[NO_TAG, (Field::InPort, 1), IP4],
            out(
                4,
                Rewrite {
                    tag: Tagging::Comes,
                    vid: Some(9),
                    pcp: Some(0),
                    ..PLAIN
                },
            ),
        ),
    );
    let why = w.offload.why(4).unwrap().to_string();
    assert!(why.ends_with("but all 3 groups have a flow"), "{why}");
    w.resize_class(2);
    assert_eq!(pairs(&w), [3]);
    w.resize_class(0);
    assert_eq!(pairs(&w), [] as [u32; 0]);
}

/// A flow that writes, of many.
fn writer(n: u32) -> Flow {
    let vlan = (Field::VlanVid, PRESENT | (2 + u128::from(n)));
    flow(5, &[vlan], vid(2, 7))
}

/// A chip with three groups and so many lines of the ACL.
fn three(lines: u32) -> Offload {
    let mut chip = tables::vsc9953(MacLookup::Vlan);
    chip.acl.size = lines;
    if let Some(c) = &mut chip.class {
        c.groups = 3;
    }
    Offload::new(chip)
}

fn crowded(lines: u32) -> Offload {
    let mut o = three(lines);
    for n in 0..100 {
        o.add(n, writer(n));
    }
    o
}

fn deny(port: u128, traffic: u64) -> Flow {
    Flow {
        traffic,
        ..flow(5, &[(Field::InPort, port), NO_TAG], Wanted::Act(Act::Drop))
    }
}

/// Of who has to leave, those go first for which there is no group: nobody else gives way for them.
#[test]
fn pairs_too_many_take_nothing_from_others() {
    let mut o = three(6);
    for port in 1..=3 {
        o.add(300 + port as u32, deny(port, 1));
    }
    let add = |id| Change::Add {
        id,
        flow: writer(id),
        chain: Chain::default(),
    };
    o.batch((0..100).map(add).collect());
    let u = o.usage();
    assert_eq!((u.groups_used, u.acl_used), (3, 6));
    for (id, e) in &o.flows {
        assert!(!e.acl_denied, "flow {id} gave way");
    }
}

/// Of many that one flow keeps from being pairs, so many are decided as there are groups, and the pairs when it comes again.
#[test]
fn one_in_front_of_many_decides_few() {
    let mut o = crowded(100);
    let sends = || flow(9, &[(Field::EthType, 0x88cc)], Wanted::Act(Act::port(3)));
    for _ in 0..3 {
        o.come(200, sends(), Chain::default());
        assert!(o.queue.len() <= 4, "{} come", o.queue.len());
        o.decide();
        assert_eq!(o.usage().groups_used, 0);
        // Those that waited are tried, and then it is this one that keeps them out
        for _ in 0..9 {
            o.measured(&[]);
        }
        assert!(o.flows.values().filter(|e| e.kept_out == Some(200)).count() > 50);
        o.leave(200);
        assert!(o.queue.len() <= 3, "{} go", o.queue.len());
        o.decide();
        o.plan();
        assert_eq!((o.usage().groups_used, o.usage().denied), (3, 97));
    }
}

/// Who waits for a pair is in nobody's way, however many these are.
#[test]
fn who_waits_for_a_pair_lets_others_by() {
    let mut o = crowded(4);
    o.add(300, deny(1, 1));
    o.add(301, deny(2, 1));
    let stands = |o: &Offload, id: u32| o.flows[&id].state.stand;
    assert_eq!(stands(&o, 301), Stand::Full);
    assert_eq!(o.usage().denied, 98);
    o.remove(300);
    assert_eq!(stands(&o, 301), Stand::Acl { wide: false });
    o.add(302, deny(3, 1));
    assert_eq!(stands(&o, 302), Stand::Full);
    // Who waits for a pair has more traffic
    let mut all: Vec<(u32, u64)> = (0..100).map(|n| (n, 50)).collect();
    all.push((302, 10));
    o.measured(&all);
    assert_eq!(stands(&o, 302), Stand::Acl { wide: false });
    assert_eq!(o.usage().groups_used, 3);
}

/// Who is behind those that are looked at after one change is looked at after the next.
#[test]
fn nobody_is_left_behind() {
    let mut chip = tables::vsc9953(MacLookup::Vlan);
    chip.acl.size = 1;
    // None of these fits into one line
    let two = |n: u32| {
        let all = [IP4, (Field::Ipv4Src, u128::from(n))];
        flow(5, &all, Wanted::Act(Act::Drop))
    };
    for r in crate::expand::expand(&chip.acl, &two(0).fields) {
        chip.acl.kinds[r.kind].lines = 2;
    }
    let mut o = Offload::new(chip);
    o.add(1, deny(1, 1));
    for n in 0..100 {
        o.add(100 + n, two(n));
    }
    assert_eq!(o.flows[&100].lines(Stand::Acl { wide: true }), 2);
    o.add(300, deny(3, 1));
    assert_eq!(o.flows[&300].state.stand, Stand::Full);
    o.remove(1);
    o.measured(&[]);
    assert_eq!(o.flows[&300].state.stand, Stand::Acl { wide: false });
}

/// The random flows of the property tests are such often enough.
#[test]
fn pairs_are_met() {
    let mut runner = TestRunner::deterministic();
    let (mut pairs, mut small) = (0, 0);
    for n in 0..60 {
        let roomy = n % 2 == 0;
        let mut chip = tables::vsc9953(MacLookup::Vlan);
        if !roomy {
            chip.acl.size = 6;
            chip.class.as_mut().unwrap().groups = 2;
        }
        let mut w = World::new(chip, packets());
        for op in ops(20).new_tree(&mut runner).unwrap().current() {
            play(&mut w, &op);
            let used = w.offload.usage().groups_used;
            *(if roomy { &mut pairs } else { &mut small }) += used;
        }
    }
    assert!(pairs > 100 && small > 50, "{pairs} {small}");
}

/// A pair's traffic is weighed as others' is, against rows of flows in front that would trap it.
#[test]
fn pairs_have_a_price() {
    let station = |n: u128| (Field::EthSrc, n);
    let host = (Field::Ipv4Src, 0x0a00_0001);
    let mut o = Offload::new(tables::vsc9953(MacLookup::Vlan));
    let with = |traffic, f: Flow| Flow { traffic, ..f };
    o.add(
        1,
        with(10, flow(1, &[IP4, host], Wanted::Act(Act::port(3)))),
    );
    o.add(2, with(0, flow(5, &[VLAN1, IP4, station(2)], vid(2, 7))));
    o.add(3, flow(9, &[IP4, host, station(3)], Wanted::Act(Act::Drop)));
    let stands = |o: &Offload| [2, 3].map(|id| o.flows[&id].state.stand);
    assert_eq!(stands(&o), [Stand::Pair, Stand::Acl { wide: true }]);
    o.measured(&[(2, 2000)]);
    assert_eq!(stands(&o), [Stand::Pair, Stand::Costly]);
    o.add(
        4,
        flow(9, &[VLAN1, IP4, station(2)], Wanted::Act(Act::port(4))),
    );
    assert_ne!(stands(&o)[0], Stand::Pair);
    o.remove(4);
    assert_eq!(stands(&o), [Stand::Pair, Stand::Costly]);
    o.measured(&[(2, 0)]);
    assert_eq!(stands(&o), [Stand::Pair, Stand::Acl { wide: true }]);
}
