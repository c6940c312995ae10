//! Filters of traffic control: a port's list in the chip is one that the kernel had, or everything traps.

use crate::common::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use tandem_abi::raw::*;
use tandem_store::model::*;
use tandem_store::*;
use zerocopy::IntoBytes;

fn key(port: u16, egress: bool, priority: u16, handle: u32) -> FilterKey {
    FilterKey {
        ifindex: 10 + u32::from(port),
        egress,
        chain: 0,
        priority,
        handle,
    }
}

/// A UDP destination port is dropped.
fn udp(k: FilterKey, dst_port: u16) -> Filter {
    let fields = tnd_acl_key {
        ethertype: 0x0800,
        protocol: 17,
        dst_port,
        ..Default::default()
    };
    let mask = tnd_acl_key {
        ethertype: u16::MAX,
        protocol: u8::MAX,
        tag: u8::MAX,
        dst_port: u16::MAX,
        ..Default::default()
    };
    Filter {
        key: k,
        text: format!("udp {dst_port} drop"),
        fields,
        mask,
        src_ports: None,
        dst_ports: None,
        verdict: FilterVerdict::Drop,
        mirror: None,
        police: None,
        kernel: None,
    }
}

fn rig(profile: &str) -> Rig {
    let mut r = Rig::new(profile, Policy::Trap);
    r.begin();
    for n in 1..=3 {
        r.up(Object::Link(swp(n)));
    }
    r.end();
    r.store.attach(Attach::Cold, 0);
    r.settle();
    r
}

fn put(r: &mut Rig, f: Filter) {
    r.up(Object::Filter(Box::new(f)));
}

/// Port, stage: whether everything traps; destination ports of the rules in order, with their action.
type Lists = BTreeMap<(u16, u16), (bool, Vec<(u16, u16)>)>;

fn lists(r: &mut Rig) -> Lists {
    let mut rules = r.chip.dump::<tnd_acl_entry>(TND_CLS_ACL_ENTRY);
    rules.sort_by_key(|e| (e.table, e.priority));
    r.chip
        .dump::<tnd_acl_bind>(TND_CLS_ACL_BIND)
        .into_iter()
        .filter(|b| b.table != 0 || b.flags != 0)
        .map(|b| {
            let of = rules.iter().filter(|e| e.table == b.table);
            let list = of.map(|e| (e.key.dst_port, e.action)).collect();
            ((b.port, b.stage), (b.flags != 0, list))
        })
        .collect()
}

const DROP: u16 = TND_ACL_DROP;
const TRAP: u16 = TND_ACL_TRAP;

#[test]
fn a_list_comes_and_goes() {
    let mut r = rig("spectrum-sn2700");
    put(&mut r, udp(key(1, false, 10, 1), 5));
    put(&mut r, udp(key(1, false, 10, 2), 6));
    put(&mut r, udp(key(1, true, 7, 1), 9));
    r.settle();
    let want = Lists::from([
        ((1, 1), (false, vec![(5, DROP), (6, DROP)])),
        ((1, 3), (false, vec![(9, DROP)])),
    ]);
    assert_eq!(lists(&mut r), want);
    assert!(
        r.store
            .filters()
            .iter()
            .all(|f| f.state == State::Installed)
    );
    for k in [
        key(1, false, 10, 1),
        key(1, false, 10, 2),
        key(1, true, 7, 1),
    ] {
        r.del(Key::Filter(k));
    }
    r.settle();
    assert_eq!(lists(&mut r), Lists::new());
    for cls in [TND_CLS_ACL_TABLE, TND_CLS_ACL_COUNTER] {
        assert!(
            r.chip.dump::<tnd_acl_counter>(cls).is_empty(),
            "class {cls}"
        );
    }
    // and comes again
    put(&mut r, udp(key(1, false, 10, 1), 5));
    r.settle();
    assert_eq!(lists(&mut r).len(), 1);
}

/// A rule is on its way, three others of its list change, the last one first, and its answer comes between two slices of that: the chip has
/// a list that the kernel had, or everything traps.
#[test]
fn an_answer_between_slices_writes_no_rule_alone() {
    let list = |ports: [u16; 4]| (false, ports.map(|n| (n, DROP)).to_vec());
    let had = [[1, 2, 3, 4], [11, 2, 3, 4], [11, 12, 13, 14]].map(list);
    let rule = |n: u16, port| udp(key(1, false, 10, u32::from(n)), port);
    let mut between = 0;
    for slices in 0..8 {
        let mut r = rig("spectrum-sn2700");
        (1..=4).for_each(|n| put(&mut r, rule(n, n)));
        r.settle();
        r.store.set_slice(1);
        put(&mut r, rule(1, 11));
        r.plan();
        assert_eq!(r.chip.rings[0].len(), 1);
        for n in [4, 3, 2] {
            put(&mut r, rule(n, 10 + n));
        }
        let mut out = Vec::new();
        for _ in 0..slices {
            r.store.plan_some(&mut out, r.now);
        }
        between += usize::from(r.store.behind());
        out.into_iter().for_each(|p| r.chip.post(p));
        let mut now = had[0].clone();
        while r.run(0) || r.plan() > 0 {
            now = lists(&mut r).remove(&(1, 1)).unwrap();
            assert!(now.0 || had.contains(&now), "{now:?}");
        }
        assert_eq!(now, had[2]);
    }
    assert!(between > 2, "{between}");
}

/// A rule that stands is another one for a moment, for which there is no room: what is refused is what nobody wants any
/// more, and the rule stands as before.
#[test]
fn a_rule_put_back_before_the_other_is_refused_stands() {
    let had = (false, vec![(1, DROP), (2, DROP)]);
    for status in [TND_ST_TABLE_FULL, TND_ST_INVALID] {
        let mut r = rig("spectrum-sn2700");
        let rule = |n: u16, port| udp(key(1, false, 10, u32::from(n)), port);
        (1..=2).for_each(|n| put(&mut r, rule(n, n)));
        r.settle();
        put(&mut r, rule(1, 11));
        r.plan();
        assert_eq!(r.chip.rings[0].len(), 1);
        put(&mut r, rule(1, 1));
        r.plan();
        let sent = r.chip.rings[0].pop_front().unwrap();
        assert_eq!((sent.op, sent.cls), (TND_OP_UPDATE, TND_CLS_ACL_ENTRY));
        let refused = Completion {
            status,
            ..Completion::default()
        };
        r.store.complete(sent.token, &refused, r.now);
        r.settle();
        assert_eq!(lists(&mut r)[&(1, 1)], had, "{status}");
        assert_eq!(words(&r.store.port_reason(11)), "");
        let rows = r.store.filters();
        assert!(rows.iter().all(|f| f.state == State::Installed));
    }
}

/// Each answer to a rule looks at that rule, however long its list is; where all of them trap by then, at all once.
#[test]
fn an_answer_to_a_rule_costs_no_look_at_the_others() {
    const RULES: u32 = 60;
    let mut r = rig("spectrum-sn2700");
    let (mut answers, mut costly) = (0, 0);
    let mut settle = |r: &mut Rig| loop {
        r.plan();
        let looks = r.store.looks();
        if !r.run(0) {
            return;
        }
        answers += 1;
        costly += usize::from(r.store.looks() - looks > 4);
    };
    for n in 0..RULES {
        put(&mut r, udp(key(1, false, 10, n), 100 + n as u16));
    }
    settle(&mut r);
    assert_eq!(lists(&mut r)[&(1, 1)].1.len(), RULES as usize);
    for n in 0..RULES {
        r.del(Key::Filter(key(1, false, 10, n)));
    }
    settle(&mut r);
    assert_eq!(lists(&mut r), Lists::new());
    assert!(answers > 2 * RULES && costly <= 3, "{costly} of {answers}");
}

/// A rule goes without a counter where the chip has no room for one. That is the business of its list alone.
#[test]
fn a_part_without_room_costs_the_lists_that_use_it() {
    // as many as `tiny` has counters
    const RULES: u16 = 8;
    let mut r = rig("tiny");
    for n in 1..=RULES {
        put(&mut r, udp(key(2, false, 10, u32::from(n)), n));
    }
    r.settle();
    let looks = r.store.looks();
    for n in 1..=2 {
        put(&mut r, udp(key(1, false, 10, u32::from(n)), n));
        r.settle();
    }
    let n = r.store.looks() - looks;
    // those of the other list are built once, and looked at when they are wanted and answered
    assert!(n < 3 * usize::from(RULES), "{n} rules looked at");
    assert_eq!(lists(&mut r)[&(1, 1)], (false, vec![(1, DROP), (2, DROP)]));
    assert_eq!(r.store.counters().waiting, 2);
    // room comes with one that goes
    for n in 1..=2 {
        r.del(Key::Filter(key(2, false, 10, n)));
        r.settle();
    }
    assert_eq!(r.store.counters().waiting, 0);
    let counted = r.chip.dump::<tnd_acl_entry>(TND_CLS_ACL_ENTRY);
    assert!(counted.iter().all(|e| e.counter != 0));
}

#[test]
fn the_kernels_own_trap_with_a_reason() {
    let mut r = rig("spectrum-sn2700");
    let mut own = udp(key(1, false, 10, 1), 5);
    own.kernel = Some("why".into());
    put(&mut r, own);
    // to a device that is no port, to the port itself, and out of one that leaves already
    let to = |k: FilterKey, ifindex| Filter {
        verdict: FilterVerdict::Redirect(ifindex),
        ..udp(k, 7)
    };
    put(&mut r, to(key(1, false, 11, 1), 99));
    put(&mut r, to(key(1, false, 12, 1), 11));
    put(&mut r, to(key(1, true, 12, 1), 12));
    put(&mut r, to(key(1, false, 13, 1), 12));
    r.settle();
    let l = lists(&mut r);
    let actions: Vec<u16> = l[&(1, 1)].1.iter().map(|x| x.1).collect();
    assert_eq!(actions, [TRAP, TRAP, TRAP, TND_ACL_REDIRECT_PORT]);
    assert_eq!(l[&(1, 3)].1, [(7, TRAP)]);
    let rows = r.store.filters();
    assert!(rows[0].state == State::Trap && words(&rows[0].reason) == "why");
    assert!(words(&rows[1].reason).contains("if99 is no front-panel port"));
}

#[test]
fn masks_of_one_preference_that_overlap_are_the_kernels() {
    let mut r = rig("spectrum-sn2700");
    let mut wide = udp(key(1, false, 10, 2), 0);
    wide.mask.dst_port = 0;
    wide.verdict = FilterVerdict::Permit;
    put(&mut r, udp(key(1, false, 10, 1), 5));
    put(&mut r, wide.clone());
    r.settle();
    assert_eq!(lists(&mut r)[&(1, 1)].1, [(5, TRAP), (0, TRAP)]);
    // with the same effect the order is nobody's business
    wide.verdict = FilterVerdict::Drop;
    put(&mut r, wide);
    r.settle();
    assert_eq!(lists(&mut r)[&(1, 1)].1, [(5, DROP), (0, DROP)]);
}

#[test]
fn behind_two_tags_the_kernel_looks() {
    let mut r = rig("spectrum-sn2700");
    let mut f = udp(key(1, false, 10, 1), 5);
    f.fields.tag = TND_ACL_TAG_8021Q;
    put(&mut r, f);
    r.settle();
    assert_eq!(lists(&mut r)[&(1, 1)].1, [(0, TRAP), (0, TRAP), (5, DROP)]);
}

#[test]
fn a_list_that_does_not_fit_traps_and_says_why() {
    let mut r = rig("tiny");
    for n in 0..40 {
        put(&mut r, udp(key(1, false, n + 1, 1), n + 1));
    }
    r.settle();
    let (traps, rules) = lists(&mut r)[&(1, 1)].clone();
    assert!(traps && rules.len() < 40);
    let reason = words(&r.store.port_reason(11));
    assert!(reason.starts_with("tc ingress filters: "), "{reason}");
    assert!(reason.contains("full (needs 1, free 0 of"), "{reason}");
    assert!(r.store.filters().iter().any(|f| f.state == State::Failed));
    for n in 10..40 {
        r.del(Key::Filter(key(1, false, n + 1, 1)));
    }
    r.settle();
    let (traps, rules) = lists(&mut r)[&(1, 1)].clone();
    assert!(!traps && rules.len() == 10, "{traps} {rules:?}");
    assert_eq!(words(&r.store.port_reason(11)), "");
}

#[test]
fn a_mirror_or_policer_without_room_makes_the_rule_the_kernels() {
    let mut r = rig("tiny");
    for n in 0..6 {
        let mut f = udp(key(1, false, n + 1, 1), n + 1);
        f.police = Some(FilterPolice {
            index: u32::from(n) + 1,
            packets: true,
            rate: 10,
            burst: 5,
            longest: u32::MAX,
        });
        f.verdict = FilterVerdict::Permit;
        put(&mut r, f);
    }
    r.settle();
    let (traps, rules) = lists(&mut r)[&(1, 1)].clone();
    assert!(!traps);
    assert_eq!(rules.iter().filter(|x| x.1 == TRAP).count(), 2);
    let rows = r.store.filters();
    let full = rows.iter().find(|f| f.state == State::Trap).unwrap();
    assert!(words(&full.reason).contains("policer full"), "{full:?}");
}

/// UDP destination ports from, to are dropped.
fn ports(k: FilterKey, from: u16, to: u16) -> Filter {
    let mut f = udp(k, 0);
    f.mask.dst_port = 0;
    f.dst_ports = Some((from, to));
    f
}

/// Ranges on the chip: which port, from, to; and the rules' of both ports.
type Ranges = (Vec<(u16, u16, u16)>, Vec<[Option<(u16, u16)>; 2]>);

fn ranges(r: &mut Rig) -> Ranges {
    let all = r.chip.dump::<tnd_acl_range>(TND_CLS_ACL_RANGE);
    let mut rules = r.chip.dump::<tnd_acl_entry>(TND_CLS_ACL_ENTRY);
    rules.sort_by_key(|e| (e.table, e.priority));
    let of = |id: u32| {
        let range = all.iter().find(|x| x.range == id)?;
        Some((range.min, range.max))
    };
    let rules = rules.iter().map(|e| [of(e.src_range), of(e.dst_range)]);
    let rules = rules.collect();
    let mut all: Vec<_> = all.iter().map(|x| (x.field, x.min, x.max)).collect();
    all.sort_unstable();
    (all, rules)
}

#[test]
fn ranges_of_ports_are_shared_and_go_with_their_last_rule() {
    const SRC: u16 = TND_ACL_RANGE_SRC;
    const DST: u16 = TND_ACL_RANGE_DST;
    let mut r = rig("spectrum-sn2700");
    put(&mut r, ports(key(1, false, 10, 1), 1000, 2000));
    put(&mut r, ports(key(2, true, 10, 1), 1000, 2000));
    let mut both = ports(key(1, false, 11, 1), 5, 6);
    both.src_ports = Some((1000, 2000));
    put(&mut r, both);
    // of all ports, and of one: no range
    put(&mut r, ports(key(1, false, 12, 1), 0, u16::MAX));
    put(&mut r, ports(key(1, false, 13, 1), 77, 77));
    r.settle();
    let drop = |port| (port, DROP);
    assert_eq!(
        lists(&mut r)[&(1, 1)],
        (false, vec![drop(0), drop(0), drop(0), drop(77)])
    );
    let (wide, narrow) = (Some((1000, 2000)), Some((5, 6)));
    let (all, rules) = ranges(&mut r);
    assert_eq!(all, [(SRC, 1000, 2000), (DST, 5, 6), (DST, 1000, 2000)]);
    assert_eq!(
        rules,
        [
            [None, wide],
            [wide, narrow],
            [None; 2],
            [None; 2],
            [None, wide]
        ]
    );
    let installed = |f: &FilterRow| f.state == State::Installed;
    assert!(r.store.filters().iter().all(installed));
    // another range in place of one, and one of two users of the other goes
    put(&mut r, ports(key(1, false, 11, 1), 5, 7));
    r.del(Key::Filter(key(1, false, 10, 1)));
    r.settle();
    let (all, rules) = ranges(&mut r);
    assert_eq!(all, [(DST, 5, 7), (DST, 1000, 2000)]);
    assert_eq!(rules[0], [None, Some((5, 7))]);
    for k in [
        key(1, false, 11, 1),
        key(1, false, 12, 1),
        key(1, false, 13, 1),
        key(2, true, 10, 1),
    ] {
        r.del(Key::Filter(k));
    }
    r.settle();
    assert_eq!(ranges(&mut r), (vec![], vec![]));
}

#[test]
fn a_range_without_room_makes_its_rule_the_kernels_until_there_is_room() {
    let mut r = rig("tiny");
    for n in 0..4 {
        put(
            &mut r,
            ports(key(1, false, 10 + n, 1), 100 * (n % 3), 100 * (n % 3) + 50),
        );
    }
    r.settle();
    // the third range has no place: its rule looks at all ports, for the kernel; the others are as they were
    let (traps, rules) = lists(&mut r)[&(1, 1)].clone();
    assert!(!traps);
    assert_eq!(rules, [(0, DROP), (0, DROP), (0, TRAP), (0, DROP)]);
    let (all, rules) = ranges(&mut r);
    assert_eq!(all.len(), 2);
    assert_eq!(rules[2], [None; 2]);
    let row = r.store.filters()[2].clone();
    assert_eq!(
        (row.state, words(&row.reason).as_str()),
        (State::Trap, "ACL ranges full (needs 1, free 0 of 2)")
    );
    // a user of the first range goes, then the other one: room
    r.del(Key::Filter(key(1, false, 10, 1)));
    r.settle();
    assert_eq!(r.store.filters()[1].state, State::Trap);
    r.del(Key::Filter(key(1, false, 13, 1)));
    r.settle();
    assert_eq!(lists(&mut r)[&(1, 1)], (false, vec![(0, DROP); 2]));
    assert_eq!(
        ranges(&mut r).1,
        [[None, Some((100, 150))], [None, Some((200, 250))]]
    );
    let installed = |f: &FilterRow| f.state == State::Installed;
    assert!(r.store.filters().iter().all(installed));
    // the other way round: a range in place of one that is the last of its own
    put(&mut r, ports(key(1, false, 11, 1), 7, 8));
    r.settle();
    assert_eq!(ranges(&mut r).1[0], [None, Some((7, 8))]);
    assert!(r.store.filters().iter().all(installed));
}

/// A chip of before ABI 1.6: it knows no ranges that rules name, and is given no such rule.
#[test]
fn a_chip_without_named_ranges_gives_the_kernel_what_they_are_for() {
    let mut r = rig("spectrum-sn2700");
    put(&mut r, ports(key(1, false, 10, 1), 1000, 2000));
    put(&mut r, udp(key(1, false, 11, 1), 5));
    let old = |p: &Planned| match p.cls {
        TND_CLS_ACL_RANGE => Fate::Refused(TND_ST_UNSUPPORTED),
        _ => Fate::Done,
    };
    r.play(0, old, |_| {});
    assert_eq!(lists(&mut r)[&(1, 1)], (false, vec![(0, TRAP), (5, DROP)]));
    assert_eq!(ranges(&mut r), (vec![], vec![[None; 2]; 2]));
    let row = r.store.filters()[0].clone();
    assert_eq!(
        (row.state, words(&row.reason).as_str()),
        (State::Trap, "the chip does not know such objects")
    );
}

/// The kernel's policer never lets pass what is longer than its burst.
#[test]
fn a_policer_whose_burst_is_less_than_a_frame_is_the_kernels() {
    let mut r = rig("spectrum-sn2700");
    for (n, burst) in [(1, 20), (2, 1521), (3, 1522)] {
        let mut f = udp(key(1, false, n, 1), n);
        f.police = Some(FilterPolice {
            index: u32::from(n),
            packets: false,
            rate: 125_000,
            burst,
            longest: u32::MAX,
        });
        f.verdict = FilterVerdict::Permit;
        put(&mut r, f);
    }
    r.settle();
    let (_, rules) = lists(&mut r)[&(1, 1)].clone();
    assert_eq!(rules.iter().filter(|x| x.1 == TRAP).count(), 2);
    let rows = r.store.filters();
    let reasons: Vec<String> = rows.iter().map(|f| words(&f.reason)).collect();
    let less = "its policer's burst of 20 bytes is less than a frame of 1522, which the port takes";
    assert!(reasons.iter().any(|r| r.contains(less)), "{reasons:?}");
}

#[test]
fn a_warm_attach_writes_nothing_and_traps_nothing() {
    let mut r = rig("spectrum-sn2700");
    for n in 0..5 {
        put(&mut r, udp(key(1, false, n + 1, 1), n + 1));
    }
    put(&mut r, ports(key(1, false, 7, 1), 1000, 2000));
    r.settle();
    let want = lists(&mut r);
    r.chip.fw.attach(true);
    r.chip.changed.clear();
    r.store.attach(Attach::Warm, r.now);
    for _ in 0..10_000 {
        let n = r.plan();
        let ran = r.run(0);
        assert_eq!(lists(&mut r), want);
        if n == 0 && !ran && !r.run(1) {
            break;
        }
    }
    r.settle();
    assert_eq!(lists(&mut r), want);
    assert_eq!(r.chip.changed, Vec::<String>::new());
}

/// A core of before ABI 1.6 has left rules that write their ranges out, and so have all places: the next one names the ranges,
/// and at no moment does a frame pass that the rules are for.
#[test]
fn a_range_that_was_written_out_is_named() {
    let mut r = rig("tiny");
    for n in [1, 2] {
        put(&mut r, ports(key(1, false, n, 1), 100 * n, 100 * n + 1));
    }
    r.settle();
    let want = (lists(&mut r), ranges(&mut r));
    let rules = r.chip.dump::<tnd_acl_entry>(TND_CLS_ACL_ENTRY);
    let named = r.chip.dump::<tnd_acl_range>(TND_CLS_ACL_RANGE);
    assert_eq!((rules.len(), named.len()), (2, 2));
    let mut write = |op, cls, body: &[u8]| {
        let cmd = tnd_cmd {
            op,
            cls,
            body_size: body.len() as u32,
            ..Default::default()
        };
        let done = r.chip.fw.execute(&cmd, body, &mut Vec::new(), 0);
        assert_eq!(done.status, TND_ST_OK);
    };
    for (rule, range) in rules.iter().zip(&named) {
        let old = tnd_acl_entry {
            dst_range: 0,
            dst_port_min: range.min,
            dst_port_max: range.max,
            ..*rule
        };
        assert_eq!(rule.dst_range, range.range);
        // the rule looks at no port first: there is no third place
        let all = tnd_acl_entry {
            dst_port_min: 0,
            dst_port_max: 0,
            ..old
        };
        write(TND_OP_UPDATE, TND_CLS_ACL_ENTRY, all.as_bytes());
        write(TND_OP_DELETE, TND_CLS_ACL_RANGE, range.as_bytes());
        write(TND_OP_UPDATE, TND_CLS_ACL_ENTRY, old.as_bytes());
    }
    r.chip.fw.attach(true);
    r.store.attach(Attach::Warm, r.now);
    for _ in 0..1000 {
        let n = r.plan();
        let ran = r.run(0);
        let (traps, rules) = lists(&mut r)[&(1, 1)].clone();
        let all = rules
            .iter()
            .all(|(_, action)| [DROP, TRAP].contains(action));
        assert!(traps || all && rules.len() == 2, "{rules:?}");
        if n == 0 && !ran && !r.run(1) {
            break;
        }
    }
    r.settle();
    assert_eq!((lists(&mut r), ranges(&mut r)), want);
}

#[derive(Clone, Debug)]
enum Op {
    Put(u16, u16, u16),
    Del(u16, u16),
    /// So many commands are executed.
    Run(u8),
    Cold,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (1u16..3, 1u16..12, 1u16..4).prop_map(|(p, pref, d)| Op::Put(p, pref, d)),
        4 => (1u16..3, 1u16..12).prop_map(|(p, pref)| Op::Del(p, pref)),
        6 => (0u8..12).prop_map(Op::Run),
        1 => Just(Op::Cold),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    /// After every command each port's list is one that the kernel had since the last time nothing was under way, or
    /// everything traps. Answers come between slices, too.
    #[test]
    fn never_a_list_that_the_kernel_had_not(ops in prop::collection::vec(op(), 1..60), slice in 1usize..16) {
        let mut r = rig("tiny");
        r.store.set_slice(slice);
        let mut kernel: BTreeMap<u16, BTreeMap<u16, u16>> = BTreeMap::from([(1, BTreeMap::new()), (2, BTreeMap::new())]);
        let mut had: BTreeMap<u16, Vec<Vec<(u16, u16)>>> = BTreeMap::from([(1, vec![vec![]]), (2, vec![vec![]])]);
        let now = |k: &BTreeMap<u16, u16>| -> Vec<(u16, u16)> { k.values().map(|d| (*d, DROP)).collect() };
        let check = |r: &mut Rig, had: &BTreeMap<u16, Vec<Vec<(u16, u16)>>>| {
            let l = lists(r);
            for (port, past) in had {
                let (traps, rules) = l.get(&(*port, 1)).cloned().unwrap_or((false, vec![]));
                assert!(traps || past.contains(&rules), "swp{port} has {rules:?}, the kernel had {past:?}");
            }
        };
        for op in ops {
            match op {
                Op::Put(p, pref, d) => {
                    kernel.get_mut(&p).unwrap().insert(pref, d);
                    put(&mut r, udp(key(p, false, pref, 1), d));
                    had.get_mut(&p).unwrap().push(now(&kernel[&p]));
                }
                Op::Del(p, pref) => {
                    if kernel.get_mut(&p).unwrap().remove(&pref).is_some() {
                        r.del(Key::Filter(key(p, false, pref, 1)));
                        had.get_mut(&p).unwrap().push(now(&kernel[&p]));
                    }
                }
                Op::Run(n) => for _ in 0..n {
                    r.plan();
                    r.run(0);
                    check(&mut r, &had);
                },
                Op::Cold => {
                    r.chip.cold();
                    r.store.attach(Attach::Cold, r.now);
                    // an empty chip has no lists until it is told of the first
                    for past in had.values_mut() {
                        past.push(vec![]);
                    }
                }
            }
        }
        r.settle();
        let l = lists(&mut r);
        for (port, k) in &kernel {
            let (traps, rules) = l.get(&(*port, 1)).cloned().unwrap_or((false, vec![]));
            prop_assert!(!traps || k.len() > 8, "swp{} traps: {}", port, words(&r.store.port_reason(10 + u32::from(*port))));
            prop_assert!(traps || rules == now(k), "swp{}: {:?}, kernel {:?}", port, rules, k);
        }
    }
}
