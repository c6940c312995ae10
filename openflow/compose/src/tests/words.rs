// SPDX-License-Identifier: Apache-2.0
//! What the rules are, one by one.
use super::model::{World, exact, ports};
use crate::places::ALIKE;
use crate::{Answer, Effect, Flow, Limits, RuleId, Tag, Through};
use std::collections::BTreeSet;
use tandem_ofoffload::{Beyond, Only, PortMask, Rewrite};
use tandem_openflow::model::{Bucket, GROUP_ANY, GroupCommand, GroupMod, GroupType};
use tandem_openflow::{Action, Field, Instructions, Oxm, port};

fn flow(table: u8, priority: u16, fields: &[Oxm], apply: &[Action], goto: Option<u8>) -> Flow {
    Flow {
        table,
        priority,
        fields: fields.to_vec(),
        instructions: Instructions {
            apply: Some(apply.to_vec()),
            goto,
            ..Instructions::default()
        },
        idle: false,
        counted: false,
    }
}

fn out(port: u32) -> Action {
    Action::Output { port, max_len: 0 }
}

fn vid(v: u16) -> Action {
    Action::SetField {
        field: Field::VlanVid,
        value: 0x1000 | u128::from(v),
    }
}

fn tagged(v: u128) -> Oxm {
    exact(Field::VlanVid, 0x1000 | v)
}

const UNTAGGED: Oxm = Oxm::exact(Field::VlanVid, 0);

fn sent(port: u8, tag: Tag) -> Answer {
    Answer::Out {
        ports: PortMask::one(port),
        effect: Effect {
            rewrite: Rewrite::default(),
            tag,
        },
    }
}

/// Rules in their order: match and answer.
fn rules(w: &World) -> Vec<(Vec<Oxm>, Answer)> {
    let mut all: Vec<_> = w.compose.rules().map(|(_, r)| r.clone()).collect();
    all.sort_by(|a, b| a.place.cmp(&b.place));
    all.into_iter().map(|r| (r.fields, r.answer)).collect()
}

/// Two tables of a switch with an access port and a trunk.
fn access() -> World {
    let mut w = World::new(Limits::default());
    let (p, q) = (exact(Field::InPort, 1), exact(Field::InPort, 2));
    let push = [Action::PushVlan(0x8100), vid(100)];
    assert!(w.add(1, flow(0, 9, &[p, UNTAGGED], &push, Some(1))));
    assert!(w.add(2, flow(0, 9, &[q, tagged(100)], &[], Some(1))));
    let to = |n| exact(Field::EthDst, n);
    let pop = |n| [Action::PopVlan, out(n)];
    assert!(w.add(3, flow(1, 5, &[to(1), tagged(100)], &pop(1), None)));
    assert!(w.add(4, flow(1, 5, &[to(2), tagged(100)], &[out(2)], None)));
    assert!(w.add(5, flow(1, 5, &[to(3), tagged(200)], &[out(3)], None)));
    w
}

#[test]
fn a_match_is_seen_back_through_what_is_written() {
    let w = access();
    let (p, q) = (exact(Field::InPort, 1), exact(Field::InPort, 2));
    let to = |n| exact(Field::EthDst, n);
    let push = Tag::Push {
        tpid: 0x8100,
        vid: Some(100),
        pcp: None,
    };
    let all = rules(&w);
    let has = |fields: &[Oxm], answer| all.contains(&(fields.to_vec(), answer));
    // Back where it came from is nowhere
    assert!(has(&[p, to(1), UNTAGGED], Answer::Drop));
    assert!(has(&[q, to(1), tagged(100)], sent(1, Tag::Pop)));
    assert!(has(&[p, to(2), UNTAGGED], sent(2, push)));
    assert!(has(&[q, to(2), tagged(100)], Answer::Drop));
    // VLAN 200 is met by nobody; what no flow matches is dropped behind its own beginning
    assert!(has(&[p, UNTAGGED], Answer::Drop) && has(&[q, tagged(100)], Answer::Drop));
    assert_eq!(all.len(), 7);
    assert_eq!(all.last(), Some(&(vec![], Answer::Drop)));
}

/// Of rules of one beginning, the answer to that match.
fn answer(w: &World, fields: &[Oxm]) -> Answer {
    let all = rules(w);
    let is = all.iter().find(|(f, _)| f == fields);
    is.unwrap_or_else(|| panic!("{fields:?} in {all:?}"))
        .1
        .clone()
}

#[test]
fn what_was_written_is_known() {
    let mut w = World::new(Limits::default());
    let (p, q) = (exact(Field::InPort, 1), exact(Field::InPort, 2));
    let set = |field, value| [Action::SetField { field, value }];
    let meta = |m| Some((m, m));
    // Metadata: by bits
    let mut f = flow(0, 9, &[p], &[], Some(1));
    f.instructions.metadata = meta(1);
    assert!(w.add(1, f));
    let mut f = flow(1, 9, &[], &[], Some(2));
    f.instructions.metadata = meta(2);
    assert!(w.add(2, f));
    assert!(w.add(3, flow(2, 9, &[exact(Field::Metadata, 3)], &[out(3)], None)));
    assert_eq!(answer(&w, &[p]), sent(3, Tag::Keep));
    // An address
    assert!(w.add(4, flow(0, 9, &[q], &set(Field::EthDst, 7), Some(3))));
    let ask = [out(port::CONTROLLER)];
    assert!(w.add(5, flow(3, 9, &[exact(Field::EthDst, 7)], &ask, None)));
    assert_eq!(answer(&w, &[q]), Answer::Cpu(None));
}

#[test]
fn what_cant_be_seen_back_is_the_cpus() {
    let written = Answer::Cpu(Some(Beyond::Written));
    let mut w = World::new(Limits::default());
    let ip = exact(Field::EthType, 0x800);
    let to = |n| exact(Field::Ipv4Dst, n);
    let set = [Action::SetField {
        field: Field::Ipv4Dst,
        value: 7,
    }];
    // A packet that is cut short has no such field, and is not written to
    assert!(w.add(1, flow(0, 9, &[ip], &set, Some(1))));
    assert!(w.add(2, flow(1, 9, &[ip, to(7)], &[], None)));
    assert_eq!(answer(&w, &[ip]), written);
    // The tag below the one that was popped
    let outer = tagged(1);
    assert!(w.add(3, flow(0, 9, &[outer], &[Action::PopVlan], Some(2))));
    assert!(w.add(4, flow(2, 9, &[tagged(2)], &[], None)));
    assert_eq!(answer(&w, &[outer]), written);
    // and what the action set writes there
    w.remove(4);
    let mut f = flow(0, 9, &[outer], &[], Some(2));
    f.instructions.write = Some(vec![vid(3), out(2)]);
    w.modify(3, &f);
    assert!(w.add(5, flow(2, 9, &[], &[Action::PopVlan], None)));
    assert_eq!(answer(&w, &[outer]), Answer::Cpu(Some(Beyond::Tag)));
}

#[test]
fn a_change_is_told_as_little_as_it_is() {
    let mut w = access();
    // Another way to the same answers: nothing to tell
    let mut f = w.flows[&2].clone();
    f.instructions.metadata = Some((7, 7));
    let changes = w.compose.modify(2, f.instructions.clone(), false, false);
    assert_eq!(changes, vec![]);
    // A station that moves: from the trunk in place; from the port as well, to which a tag comes
    let f = flow(1, 5, &[], &[out(3)], None);
    let changes = w.compose.modify(4, f.instructions, false, false);
    assert_eq!(changes.len(), 2, "{changes:?}");
    let in_place = |c| matches!(c, &tandem_ofoffload::Change::Modify { .. });
    assert!(changes.iter().all(in_place));
    assert_eq!(w.compose.rules_of(4).len(), 2);
    assert_eq!(w.compose.rules_of(1).len(), 3);
}

#[test]
fn two_forms_of_a_packet_are_the_cpus() {
    let mut w = access();
    let flood = [out(2), Action::PopVlan, out(1), out(3)];
    assert!(w.add(6, flow(1, 1, &[tagged(100)], &flood, None)));
    let all = rules(&w);
    let of = |fields: &[Oxm]| all.iter().find(|(f, _)| f == fields).unwrap().1.clone();
    let (p, q) = (exact(Field::InPort, 1), exact(Field::InPort, 2));
    assert_eq!(of(&[p, UNTAGGED]), Answer::Cpu(Some(Beyond::Copies)));
    // From the trunk there is one form, without the tag
    let Answer::Out { ports, effect } = of(&[q, tagged(100)]) else {
        panic!();
    };
    assert_eq!((ports.count(), effect.tag), (2, Tag::Pop));
}

/// A switch that learns, on two trunks; `n` stations for each.
fn learning(n: u128) -> World {
    let mut w = World::new(Limits::default());
    let mut id = 0;
    let mut add = |f: Flow| {
        id += 1;
        assert!(w.add(id, f));
    };
    let ask = [out(port::CONTROLLER)];
    for p in 1..3u128 {
        let port = exact(Field::InPort, p);
        add(flow(0, 9, &[port, tagged(100)], &[], Some(1)));
        for m in 0..n {
            let (src, dst) = (
                exact(Field::EthSrc, p << 8 | m),
                exact(Field::EthDst, p << 8 | m),
            );
            add(flow(1, 5, &[port, src, tagged(100)], &[], Some(2)));
            add(flow(2, 5, &[dst, tagged(100)], &[out(p as u32)], None));
        }
    }
    add(flow(1, 4, &[tagged(100)], &ask, Some(2)));
    w
}

#[test]
fn a_table_of_sources_is_one_question() {
    let mut w = learning(4);
    assert!(w.compose.asks_sources());
    assert_eq!(w.compose.sources().len(), 8);
    let entry = |w: &World, m: u128| {
        let fields = [exact(Field::EthDst, m), tagged(100)];
        let all: Vec<_> = w.compose.rules().map(|(_, r)| r.clone()).collect();
        let r = all.into_iter().find(|r| r.fields == fields).unwrap();
        assert!(r.checked && r.only == Some(Only::Mac));
        r.answer
    };
    assert_eq!(entry(&w, 0x101), sent(1, Tag::Keep));
    assert_eq!(entry(&w, 0x203), sent(2, Tag::Keep));
    // Eight stations, what no station is for, what is in no VLAN
    assert_eq!(w.compose.rules().count(), 10);
    // Frames to a station would go where it is not heard: its entry would say that it is
    let port = exact(Field::InPort, 1);
    w.remove(2);
    assert_eq!(entry(&w, 0x100), Answer::Cpu(Some(Beyond::Source)));
    w.add(
        2,
        flow(
            1,
            5,
            &[port, exact(Field::EthSrc, 0x100), tagged(100)],
            &[],
            Some(2),
        ),
    );
    assert_eq!(entry(&w, 0x100), sent(1, Tag::Keep));
    // A port whose chains stand elsewhere: its sources are the CPU's, and so are its stations
    w.remove(1);
    w.add(1, flow(0, 10, &[port, tagged(100)], &[], Some(1)));
    w.add(99, flow(0, 10, &[port], &[], None));
    assert_eq!(w.compose.sources().len(), 4);
    assert_eq!(entry(&w, 0x101), Answer::Cpu(Some(Beyond::Source)));
    // With nothing between it may stand with the others
    w.remove(99);
    assert_eq!(w.compose.sources().len(), 8);
    assert_eq!(entry(&w, 0x101), sent(1, Tag::Keep));
    // Nothing behind that asks the controller: chains as others
    let last = *w.flows.keys().last().unwrap();
    w.remove(last);
    assert!(!w.compose.asks_sources());
    assert!(
        w.compose
            .rules()
            .all(|(_, r)| !r.checked && r.only.is_none())
    );
}

/// Who has no source there has to be the CPU's, all of them; ports have to agree, and stand in one place.
#[test]
fn what_is_no_table_of_sources() {
    let asks = |behind: &[Flow]| {
        let mut w = learning(2);
        let last = *w.flows.keys().last().unwrap();
        w.remove(last);
        for (n, f) in (100u32..).zip(behind) {
            assert!(w.add(n, f.clone()));
        }
        w.compose.asks_sources()
    };
    let ask = [out(port::CONTROLLER)];
    let ip = exact(Field::EthType, 0x800);
    assert!(asks(&[flow(1, 4, &[], &ask, None)]));
    assert!(!asks(&[flow(1, 4, &[], &[], Some(2))]));
    assert!(!asks(&[flow(1, 4, &[ip], &ask, None)]));

    let station = [exact(Field::EthDst, 0x100), tagged(100)];
    let port = |n| exact(Field::InPort, n);
    let mut w = learning(2);
    assert_eq!(answer(&w, &station), sent(1, Tag::Keep));
    // What port 1 sends to everybody goes out of one port, what port 2 does out of another
    let everybody = [exact(Field::EthDst, 0xffff_ffff_ffff), tagged(100)];
    for (n, p, to) in [(100, 1, 3), (101, 2, 3), (101, 2, 4)] {
        let fields = [port(p), everybody[0], everybody[1]];
        let f = flow(2, 6, &fields, &[out(to)], None);
        let changed = w.flows.contains_key(&n);
        assert!(if changed {
            w.modify(n, &f)
        } else {
            w.add(n, f)
        });
        let agree = if (p, to) == (2, 3) {
            sent(3, Tag::Keep)
        } else {
            Answer::Cpu(Some(Beyond::Source))
        };
        assert_eq!(answer(&w, &everybody), agree);
    }
    // Frames of port 2 that look otherwise to later tables: its sources are the CPU's
    let second = flow(0, 9, &[port(2), tagged(100)], &[], Some(1));
    let id = *w.flows.iter().find(|(_, f)| **f == second).unwrap().0;
    let mut f = second.clone();
    f.instructions.metadata = Some((1, 1));
    w.modify(id, &f);
    let known = w.compose.sources();
    assert!(known.len() == 2 && known.iter().all(|s| s.port == 1));
    assert_eq!(answer(&w, &everybody), sent(3, Tag::Keep));
    // Chains of port 2 in two places
    let mut w = learning(2);
    assert_eq!(w.compose.sources().len(), 4);
    let fields = [port(2), ip, tagged(100)];
    assert!(w.add(100, flow(0, 10, &fields, &[], Some(1))));
    let known = w.compose.sources();
    assert!(known.len() == 2 && known.iter().all(|s| s.port == 1));
}

#[test]
fn an_entry_beside_a_table_of_sources_is_in_the_acl() {
    let mut w = learning(1);
    let fields = [exact(Field::EthDst, 0x7777), tagged(100)];
    w.add(90, flow(0, 20, &fields, &[out(3)], None));
    let only = |w: &World| {
        w.compose
            .rule(*w.compose.rules_of(90).first().unwrap())
            .unwrap()
            .only
    };
    assert_eq!(only(&w), Some(Only::Acl));
    let last = w.flows.keys().copied().filter(|n| *n < 90).max().unwrap();
    w.remove(last);
    assert_eq!(only(&w), None);
}

/// Two access ports and two trunks: what is flooded leaves in two forms from wherever it came, and is one entry.
#[test]
fn a_flood_in_two_forms_is_an_entry_of_its_domain() {
    let mut w = World::new(Limits {
        members: true,
        ..Limits::default()
    });
    let push = [Action::PushVlan(0x8100), vid(100)];
    let everybody = exact(Field::EthDst, 0xffff_ffff_ffff);
    for p in 1..5u32 {
        let port = exact(Field::InPort, p.into());
        let (form, actions): (Oxm, &[Action]) = match p {
            1 | 2 => (UNTAGGED, &push),
            _ => (tagged(100), &[]),
        };
        assert!(w.add(p, flow(0, 9, &[port, form], actions, Some(1))));
        let from = [port, exact(Field::EthSrc, p.into()), tagged(100)];
        assert!(w.add(10 + p, flow(1, 5, &from, &[], Some(2))));
    }
    let ask = [out(port::CONTROLLER)];
    assert!(w.add(20, flow(1, 4, &[tagged(100)], &ask, Some(2))));
    let flood = [out(3), out(4), Action::PopVlan, out(1), out(2)];
    assert!(w.add(21, flow(2, 5, &[everybody, tagged(100)], &flood, None)));
    assert_eq!(w.compose.members().len(), 4);
    let Answer::Out { ports, effect } = answer(&w, &[everybody]) else {
        panic!();
    };
    assert_eq!((ports.count(), effect), (4, Effect::default()));
    // A tag too few for one of the trunks: no member gets that
    let other = [out(3), Action::PopVlan, out(4), out(1), out(2)];
    let f = flow(2, 5, &[everybody, tagged(100)], &other, None);
    assert!(w.modify(21, &f));
    let is = answer(&w, &[everybody]);
    assert!(matches!(is, Answer::Cpu(Some(_))), "{is:?}");
}

#[test]
fn too_many_chains_are_one_rule() {
    let limits = Limits {
        per_flow: 3,
        ..Limits::default()
    };
    let mut w = World::new(limits);
    let port = exact(Field::InPort, 1);
    w.add(1, flow(0, 9, &[port], &[], Some(1)));
    for m in 0..4u32 {
        let dst = exact(Field::EthDst, u128::from(m));
        w.add(2 + m, flow(1, 5, &[dst], &[out(2)], None));
    }
    let cut = (vec![port], Answer::Cpu(Some(Beyond::Chains)));
    assert_eq!(rules(&w), vec![cut, (vec![], Answer::Drop)]);
    assert_eq!(w.compose.cuts(), 1);
    w.remove(2);
    assert_eq!(w.compose.cuts(), 1);
    w.remove(3);
    assert_eq!((w.compose.cuts(), rules(&w).len()), (0, 4));
}

#[test]
fn other_ports_are_other_answers() {
    let mut w = World::new(Limits::default());
    let port = |n| exact(Field::InPort, n);
    assert!(w.add(1, flow(0, 9, &[port(1)], &[], Some(1))));
    assert!(w.add(2, flow(1, 9, &[], &[out(port::FLOOD)], None)));
    assert!(w.add(3, flow(0, 9, &[port(2)], &[out(4)], None)));
    let count = |w: &World| match answer(w, &[port(1)]) {
        Answer::Out { ports, .. } => ports.count(),
        other => panic!("{other:?}"),
    };
    assert_eq!(count(&w), 4);
    let changes = w.compose.set_ports(ports(3));
    w.tell(changes);
    assert_eq!(count(&w), 3);
    let gone = Answer::Cpu(Some(Beyond::Port));
    assert_eq!(answer(&w, &[port(2)]), gone);
    // One of this number that is another flow
    let f = flow(0, 9, &[port(3)], &[out(1)], None);
    w.flows.insert(3, f.clone());
    let changes = w.compose.add(3, f);
    w.tell(changes);
    assert!(rules(&w).iter().all(|(f, _)| *f != [port(2)]));
    assert_eq!(answer(&w, &[port(3)]), sent(1, Tag::Keep));
}

/// A group of this type whose buckets watch these ports, if any, and do these actions.
fn group(w: &mut World, group: u32, kind: GroupType, buckets: &[(Option<u32>, &[Action])]) {
    let bucket = |(watch, actions): &(Option<u32>, &[Action])| Bucket {
        weight: u16::from(kind == GroupType::Select),
        watch_port: watch.unwrap_or(port::ANY),
        watch_group: GROUP_ANY,
        actions: actions.to_vec(),
    };
    assert!(w.group(&GroupMod {
        command: GroupCommand::Add,
        kind,
        group,
        buckets: buckets.iter().map(bucket).collect(),
    }));
}

#[test]
fn a_group_is_the_ports_of_its_buckets() {
    let mut w = World::new(Limits::default());
    let through = |g| flow(0, 9, &[exact(Field::InPort, 1)], &[Action::Group(g)], None);
    let of = |w: &World| answer(w, &[exact(Field::InPort, 1)]);
    group(&mut w, 1, GroupType::Indirect, &[(None, &[out(2)])]);
    assert!(w.add(1, through(1)));
    assert_eq!(of(&w), sent(2, Tag::Keep));
    let mut both = PortMask::one(2);
    both.insert(3);
    group(
        &mut w,
        1,
        GroupType::All,
        &[(None, &[out(2)]), (None, &[out(3)])],
    );
    let to = |ports| Answer::Out {
        ports,
        effect: Effect::default(),
    };
    assert_eq!(of(&w), to(both));
    // What one bucket writes the next does not see
    let tagged = [Action::PushVlan(0x8100), out(3)];
    group(
        &mut w,
        1,
        GroupType::All,
        &[(None, &tagged), (None, &[out(2)])],
    );
    assert_eq!(of(&w), Answer::Cpu(Some(Beyond::Copies)));
    // By another group, of which one bucket is live
    group(
        &mut w,
        2,
        GroupType::FastFailover,
        &[(Some(3), &[out(3)]), (Some(4), &[out(4)])],
    );
    group(
        &mut w,
        1,
        GroupType::Indirect,
        &[(None, &[Action::Group(2)])],
    );
    assert_eq!(of(&w), sent(3, Tag::Keep));
    w.link(3, false);
    assert_eq!(of(&w), sent(4, Tag::Keep));
    w.link(4, false);
    assert_eq!(of(&w), Answer::Drop);
    w.link(3, true);
    assert_eq!(of(&w), sent(3, Tag::Keep));
    let via: Vec<(u32, Option<u32>)> = {
        let id = *w.compose.rules_of(1).first().unwrap();
        let via = &w.compose.rule(id).unwrap().via;
        via.iter().map(|t| (t.group, t.bucket)).collect()
    };
    assert_eq!(via, [(1, None), (1, Some(0)), (2, None), (2, Some(0))]);
    // Several live buckets of which each packet takes one
    group(
        &mut w,
        2,
        GroupType::Select,
        &[(Some(2), &[out(2)]), (Some(3), &[out(3)])],
    );
    assert_eq!(of(&w), Answer::Cpu(Some(Beyond::Group)));
    w.link(2, false);
    assert_eq!(of(&w), sent(3, Tag::Keep));
}

#[test]
fn a_packet_that_takes_many_buckets_is_the_cpus() {
    let mut w = World::new(Limits::default());
    let none: &[Action] = &[];
    let many = |n: usize| vec![(None, none); n];
    for (n, is) in [(256, Answer::Drop), (257, Answer::Cpu(Some(Beyond::Group)))] {
        group(&mut w, 1, GroupType::All, &many(n));
        if n == 256 {
            assert!(w.add(1, flow(0, 9, &[], &[Action::Group(1)], None)));
        }
        assert_eq!(answer(&w, &[]), is);
    }
}

/// However many chains there are behind a group, and flows that name it, each list of buckets is there once; and one that
/// nobody has any more is forgotten.
#[test]
fn chains_have_the_buckets_of_a_group_in_common() {
    let mut w = World::new(Limits::default());
    let none: &[Action] = &[];
    let goes = |p: u64| {
        flow(
            0,
            9,
            &[exact(Field::InPort, p.into())],
            &[Action::Group(1)],
            Some(1),
        )
    };
    group(&mut w, 1, GroupType::All, &[(None, none); 3]);
    for n in 1..5 {
        assert!(w.add(n, goes(u64::from(n))));
    }
    for n in 5..8 {
        let to = exact(Field::EthDst, n.into());
        assert!(w.add(n, flow(1, 9, &[to], none, None)));
    }
    // and in an action set, which is carried out at the end of the way
    for n in 8..10 {
        let mut ends = flow(0, 9, &[exact(Field::InPort, n.into())], none, None);
        ends.instructions.write = Some(vec![Action::Group(1)]);
        assert!(w.add(n, ends));
    }
    let all = [1, 2, 3, 4, 8, 9];
    let rules: Vec<RuleId> = all
        .into_iter()
        .flat_map(|n| w.compose.rules_of(n))
        .collect();
    let of_rules = rules.iter().map(|r| &w.compose.rule(*r).unwrap().via);
    let nodes = w.compose.nodes.iter().flatten().map(|n| &n.form.via);
    let lists: Vec<_> = of_rules.chain(nodes).filter(|v| !v.is_empty()).collect();
    assert!(rules.len() >= 18 && lists.iter().all(|v| v.len() == 4));
    let places: BTreeSet<*const Through> = lists.iter().map(|v| v.as_ptr()).collect();
    assert_eq!(places.len(), 1);
    // a hundred other lists, one after the other
    for n in 0..100 {
        group(&mut w, 1, GroupType::All, &vec![(None, none); 4 + n]);
    }
    assert!(
        w.compose.rules.vias.len() <= 64,
        "{}",
        w.compose.rules.vias.len()
    );
}

/// The first table of a controller with lists of rules at some ports: chains behind a goto are in one place for all ports,
/// whatever stands in front of it at one of them; but a flow does not pass by one that it meets.
#[test]
fn lists_of_rules_at_ports_leave_the_others_in_one_place() {
    let mut w = World::new(Limits::default());
    let port = |n| exact(Field::InPort, n);
    let ip = exact(Field::EthType, 0x800);
    for p in 1..5u32 {
        let f = flow(0, 20, &[port(p.into())], &[], Some(1));
        assert!(w.add(p, f));
    }
    let places = |w: &World| {
        let of = |p: u32| *w.compose.rules_of(p).first().unwrap();
        let place = |p| w.compose.rule(of(p)).unwrap().place.first().cloned();
        [1, 2, 3, 4].map(place).map(|p| p == place(4))
    };
    assert_eq!(places(&w), [true; 4]);
    // Port 3 gets rules of its own, and what lets the others pass stands behind them
    w.remove(3);
    assert!(w.add(10, flow(0, 20, &[port(3), ip], &[], None)));
    let dst = exact(Field::EthDst, 7);
    assert!(w.add(11, flow(0, 19, &[port(3), dst], &[], None)));
    assert!(w.add(3, flow(0, 18, &[port(3)], &[], Some(1))));
    assert_eq!(places(&w), [true; 4]);
    // What all of them meet is not passed by
    let from = exact(Field::EthSrc, 7);
    assert!(w.add(12, flow(0, 19, &[from], &[], None)));
    assert_eq!(places(&w), [true, true, false, true]);
    w.remove(12);
    assert_eq!(places(&w), [true; 4]);
    // Nor is what one of them meets, by this one
    assert!(w.add(13, flow(0, 19, &[port(2), dst], &[], None)));
    assert_eq!(places(&w), [true, false, true, true]);
    // One that goes elsewhere is not one of them
    let f = flow(0, 18, &[port(3)], &[], Some(2));
    assert!(w.modify(3, &f));
    w.remove(13);
    assert_eq!(places(&w), [true, true, false, true]);
}

/// So many that are alike that looking at all would take long stand where they are, until they are fewer again.
#[test]
fn too_many_alike_stand_where_they_are() {
    let mut w = World::new(Limits::default());
    let port = |n: u32| exact(Field::InPort, n.into());
    let all = ALIKE as u32;
    for p in 1..=all {
        let priority = if p == all { 18 } else { 20 };
        assert!(w.add(p, flow(0, priority, &[port(p)], &[], Some(1))));
    }
    let together = |w: &World| {
        let of = |p: u32| *w.compose.rules_of(p).first().unwrap();
        let place = |p| w.compose.rule(of(p)).unwrap().place.first().cloned();
        [1, 7].map(|p| place(p) == place(all))
    };
    assert_eq!(together(&w), [true; 2]);
    assert!(w.add(all + 1, flow(0, 20, &[port(all + 1)], &[], Some(1))));
    assert_eq!(together(&w), [false; 2]);
    w.remove(7);
    assert!(w.add(7, flow(0, 20, &[port(7)], &[], Some(1))));
    assert_eq!(together(&w), [false; 2]);
    w.remove(all + 1);
    assert_eq!(together(&w), [true; 2]);
}

/// A flow that stood behind others, and goes on elsewhere, where there are too many: it passes by no flow any more.
#[test]
fn who_comes_to_too_many_stands_where_it_is() {
    let mut w = World::new(Limits::default());
    let port = |n: u32| exact(Field::InPort, n.into());
    let all = ALIKE as u32;
    for p in 10..all + 11 {
        assert!(w.add(p, flow(0, 20, &[port(p)], &[], Some(2))));
    }
    assert!(w.add(1, flow(0, 20, &[port(1)], &[], Some(1))));
    assert!(w.add(3, flow(0, 10, &[port(3)], &[], Some(1))));
    let place = |w: &World, id: u32| {
        let rules = w.compose.rules_of(id);
        let rule = w.compose.rule(*rules.first().unwrap()).unwrap();
        rule.place.first().cloned().unwrap()
    };
    assert_eq!(place(&w, 1), place(&w, 3));
    assert!(w.modify(1, &flow(0, 20, &[port(1)], &[], Some(2))));
    let dst = exact(Field::EthDst, 7);
    assert!(w.add(2, flow(0, 15, &[port(1), dst], &[], None)));
    assert!(place(&w, 1) < place(&w, 2) && place(&w, 2) < place(&w, 3));
}
