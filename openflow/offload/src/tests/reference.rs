// SPDX-License-Identifier: Apache-2.0
//! The rules of docs/openflow-offload.md read word by word: every flow against every flow.
use super::model::{Answer, World};
use crate::expand::{self, Row};
use crate::index::Side;
use crate::{Act, Flow, Id, Offload, Stand, Vlan};
use std::ops::ControlFlow;
use tandem_ofpipeline::key::Key;
use tandem_openflow::{Field, Oxm};

fn meet(a: &[Oxm], b: &[Oxm]) -> bool {
    a.iter().all(|x| {
        b.iter()
            .filter(|y| y.field == x.field)
            .all(|y| (x.value ^ y.value) & x.mask & y.mask == 0)
    })
}

fn covers(a: &[Oxm], b: &[Oxm]) -> bool {
    a.iter().all(|x| {
        b.iter()
            .any(|y| y.field == x.field && y.mask & x.mask == x.mask && y.value & x.mask == x.value)
    })
}

struct Placed {
    id: Id,
    flow: Flow,
    stand: Stand,
    hole: bool,
    real: bool,
    /// What its rows in the ACL ask for.
    rows: Vec<Vec<Oxm>>,
}

fn rank(f: &Flow) -> (u16, (u32, Key)) {
    (f.priority, Key::of_match(&f.fields).1.rank())
}

fn vlan_key(w: &World, f: &Flow) -> Option<(u128, Vlan)> {
    let table = w.offload.chip().mac?;
    let key = w.offload.mac_key(&f.fields, None)?;
    let can = match key.vlan {
        Vlan::Any => table.any_vlan,
        _ => table.vlan,
    };
    can.then_some((u128::from(key.address), key.vlan))
}

fn plain_in_mac(w: &World, f: &Flow) -> bool {
    let act = match f.wanted.act() {
        Act::Drop => false,
        Act::Cpu => true,
        Act::Out { ports, rewrite } => {
            if rewrite != crate::Rewrite::default() {
                // There it traps, where rows do no better
                return vlan_key(w, f).is_some() && !does(w, f.wanted.act()) && !f.counted;
            }
            ports.count() <= 1 || w.offload.chip().mac.is_some_and(|m| m.port_sets >= 3)
        }
    };
    // Where rows do all of it, they see whether it is idle
    let rows = f.idle && does(w, f.wanted.act()) && !wide(w, f);
    vlan_key(w, f).is_some() && act && !rows && !f.counted
}

fn wide(w: &World, f: &Flow) -> bool {
    let rows = expand::expand(&w.offload.chip().acl, &f.fields);
    rows.iter().any(|r| !r.exact)
}

fn does(w: &World, act: Act) -> bool {
    let acl = &w.offload.chip().acl;
    match act {
        Act::Drop => true,
        Act::Cpu => false,
        Act::Out { ports, rewrite } => {
            let (can, plain) = (acl.rewrites, crate::Tagging::Stays);
            (acl.port_sets || ports.count() <= 1)
                && (can.vid || rewrite.vid.is_none())
                && (can.pcp || rewrite.pcp.is_none())
                && (can.dscp || rewrite.dscp.is_none())
                && (can.tags || rewrite.tag == plain)
        }
    }
}

/// Is there an answer that classification and a row of the ACL can give between them, for this match?
fn written(w: &World, f: &Flow) -> bool {
    let (chip, act) = (w.offload.chip(), f.wanted.act());
    let (Some(class), Act::Out { ports, rewrite }) = (&chip.class, act) else {
        return false;
    };
    let vid = f.fields.iter().find(|o| o.field == Field::VlanVid);
    let tag = vid
        .filter(|o| o.mask & 0x1000 != 0)
        .map(|o| o.value & 0x1000 != 0);
    let ip = f
        .fields
        .iter()
        .any(|o| o.field == Field::EthType && matches!(o.value, 0x800 | 0x86dd));
    let asked = match rewrite.tag {
        crate::Tagging::Stays => (rewrite.vid, rewrite.pcp) == (None, None) || tag == Some(true),
        crate::Tagging::Comes => tag == Some(false),
        crate::Tagging::Goes => tag == Some(true),
    };
    let rows = expand::expand(&class.rows, &f.fields);
    !does(w, act)
        && (chip.acl.port_sets || ports.count() <= 1)
        && asked
        && (ip || rewrite.dscp.is_none())
        && !rows.is_empty()
        && rows.iter().all(|r| r.exact)
}

/// May it not be in front of a flow that classification writes for?
fn bars(f: &Flow) -> bool {
    let tag = |o: &Oxm| matches!(o.field, Field::VlanVid | Field::VlanPcp);
    matches!(f.wanted.act(), Act::Out { .. }) || f.fields.iter().any(tag)
}

/// What the MAC table does by itself.
fn in_mac(act: Act) -> bool {
    match act {
        Act::Out { rewrite, .. } => rewrite == crate::Rewrite::default(),
        act => act.real(),
    }
}

/// Does only the MAC table do all of it?
fn lossy(w: &World, f: &Flow) -> bool {
    let act = f.wanted.act();
    in_mac(act) && plain_in_mac(w, f) && (!does(w, act) || wide(w, f))
}

/// Each flow's place, from the back of the order to its front.
fn places(w: &World) -> Vec<Placed> {
    let chip = w.offload.chip();
    let mut flows: Vec<(Id, Flow)> = w
        .software
        .flows
        .iter()
        .map(|(i, f)| (*i, f.clone()))
        .collect();
    // Which of two that never meet is in front nobody says; wide rows of one may meet the other
    let tie = |a: Id, b: Id| {
        let place = |id| w.offload.flows[&id].place;
        w.offload.order.cmp(place(b), place(a))
    };
    flows.sort_by(|a, b| rank(&a.1).cmp(&rank(&b.1)).then_with(|| tie(a.0, b.0)));
    // Of two of one rank nobody's answer depends on who is in front, so that may be said by whoever says it
    for (n, (_, a)) in flows.iter().enumerate() {
        let same = flows[n + 1..]
            .iter()
            .take_while(|(_, b)| rank(a) == rank(b));
        for (_, b) in same {
            assert!(!meet(&a.fields, &b.fields), "{a:?} and {b:?} have one rank");
        }
    }
    let mut placed: Vec<Placed> = Vec::new();
    for (n, (id, flow)) in flows.iter().enumerate() {
        let mut p = Placed {
            id: *id,
            flow: flow.clone(),
            stand: Stand::Idle,
            hole: false,
            real: false,
            rows: Vec::new(),
        };
        let act = flow.wanted.act();
        let by = flows[n + 1..]
            .iter()
            .rev()
            .find(|(_, g)| covers(&g.fields, &flow.fields));
        if let Some((by, _)) = by {
            p.stand = Stand::Dead(*by);
            placed.push(p);
            continue;
        }
        let unseen = !flow.counted && !flow.idle;
        if flow.fields.is_empty() && act == Act::Drop && chip.miss_drop && unseen {
            p.stand = Stand::Miss;
            p.real = true;
            placed.push(p);
            continue;
        }
        let front = &flows[n + 1..];
        if written(w, flow)
            && !front
                .iter()
                .any(|(_, g)| meet(&g.fields, &flow.fields) && bars(g))
        {
            p.stand = Stand::Pair;
            p.real = true;
            // All packets of its group are its own
            p.rows = vec![flow.fields.clone()];
            placed.push(p);
            continue;
        }
        let needed = placed
            .iter()
            .any(|g| g.real && meet(&g.flow.fields, &flow.fields));
        let shadowed = placed.iter().any(|g| {
            g.rows.iter().any(|r| meet(r, &flow.fields))
                || g.stand == Stand::Mac && meet(&g.flow.fields, &flow.fields)
        });
        if plain_in_mac(w, flow) && (in_mac(act) || needed) && !shadowed {
            p.stand = Stand::Mac;
            p.real = in_mac(act);
            placed.push(p);
            continue;
        }
        let rows = expand::expand(&chip.acl, &flow.fields);
        let lossy: Vec<&Flow> = flows[n + 1..]
            .iter()
            .map(|(_, g)| g)
            .filter(|g| meet(&g.fields, &flow.fields) && lossy(w, g))
            .collect();
        let pushed: u64 = lossy.iter().map(|g| g.traffic).sum();
        let pushes = !lossy.is_empty() && pushed >= flow.traffic;
        let does = does(w, act);
        let exact: Vec<&Row> = rows.iter().filter(|r| r.exact).collect();
        let wide: Vec<&Row> = rows.iter().filter(|r| !r.exact).collect();
        let answers = does && !exact.is_empty();
        // What the CPU answers needs no row while nothing behind it answers
        let mut with_wide = needed || wide.is_empty();
        if answers && wide.is_empty() && pushes {
            p.stand = Stand::Pushes;
            p.hole = true;
            placed.push(p);
            continue;
        }
        let weighed = !wide.is_empty() || !answers && !lossy.is_empty();
        if needed && weighed {
            let real = placed.iter().filter(|g| g.real);
            let (mut trapped, mut turned) = (64 * pushed, 0);
            for g in real {
                if meet(&g.flow.fields, &flow.fields) {
                    turned += 64 * g.flow.traffic;
                }
                for r in &wide {
                    if covers(&r.fields, &g.flow.fields) {
                        trapped += 64 * g.flow.traffic;
                    } else if meet(&r.fields, &g.flow.fields) {
                        let ether = r.fields.iter().find(|o| o.field == Field::EthType);
                        let arp = ether.is_some_and(|o| matches!(o.value, 0x806 | 0x8035));
                        trapped += g.flow.traffic * if arp { 1 } else { 32 };
                    }
                }
            }
            if trapped > turned {
                with_wide = false;
                p.hole = true;
            }
        }
        p.stand = match (answers, with_wide, needed) {
            (true, true, _) => Stand::Acl {
                wide: !wide.is_empty(),
            },
            (true, false, _) if !pushes => Stand::Acl { wide: false },
            (false, true, true) => Stand::Acl { wide: true },
            (_, _, true) => Stand::Costly,
            (_, _, false) => Stand::Idle,
        };
        p.real = answers && matches!(p.stand, Stand::Acl { .. });
        match p.stand {
            Stand::Acl { wide: true } => p.rows = rows.iter().map(|r| r.fields.clone()).collect(),
            Stand::Acl { wide: false } => p.rows = exact.iter().map(|r| r.fields.clone()).collect(),
            _ => {}
        }
        placed.push(p);
    }
    placed
}

/// Does each flow stand where the rules have it, and is what should be answered in the chip answered there?
pub fn judge(w: &World) {
    let placed = places(w);
    for (n, p) in placed.iter().enumerate() {
        let e = &w.offload.flows[&p.id];
        assert_eq!(e.state.stand, p.stand, "flow {}: {:?}", p.id, p.flow);
        assert_eq!(e.state.hole, p.hole, "flow {}: {:?}", p.id, p.flow);
        assert_eq!(e.state.real, p.real, "flow {}: {:?}", p.id, p.flow);
        let holes = placed[n + 1..]
            .iter()
            .filter(|g| g.hole && meet(&g.flow.fields, &p.flow.fields))
            .count();
        assert_eq!(e.holes as usize, holes, "flow {}: {:?}", p.id, p.flow);
    }
    // What the first flow of a packet answers in the chip, without wide rows in front of it, does not reach the CPU
    for packet in &w.packets {
        let Some(first) = w.software.first(packet) else {
            continue;
        };
        let at = placed.iter().position(|p| p.id == first).unwrap();
        let p = &placed[at];
        let e = &w.offload.flows[&first];
        let trapped = placed.iter().any(|g| {
            matches!(g.stand, Stand::Acl { .. })
                && w.offload.flows[&g.id].wide()
                && g.rows.iter().any(|r| packet.matches(r))
        });
        if p.real && e.holes == 0 && !trapped {
            assert_ne!(
                w.device.answer(packet),
                Answer::Cpu,
                "{packet:?} {:?}",
                p.flow
            );
        }
    }
}

/// The same flows, one after the other into an empty chip.
pub fn from_scratch(w: &World) {
    let mut fresh = World::new(w.offload.chip().clone(), Vec::new());
    let mut ids: Vec<Id> = w.software.flows.keys().copied().collect();
    ids.sort_unstable();
    for id in ids {
        fresh.add(id, w.software.flows[&id].clone());
    }
    assert_eq!(fresh.device.picture(), w.device.picture());
}

/// The same of pairs: none is out for which there is room.
pub fn no_pair_is_kept_out(w: &World) {
    let o: &Offload = &w.offload;
    for (id, e) in &o.flows {
        let out = !matches!(e.state.stand, Stand::Pair | Stand::Dead(_));
        if out && e.writes && o.meets_in_front(e).is_none() && o.pair_fits(e) {
            let mut more = o.clone();
            let entry = more.flows.get_mut(id).unwrap();
            (entry.acl_denied, entry.class_denied) = (false, false);
            more.wake(*id);
            more.run();
            assert!(more.over(), "flow {id} fits as a pair: {:?}", e.flow);
        }
    }
}

/// With a table full: whoever is out does not fit. Not asked of flows on which others in front depend: these may need
/// rows then, leave others out, and so on; such rounds are cut off.
pub fn nobody_is_kept_out(w: &World) {
    let o: &Offload = &w.offload;
    let software = o.flows.values().filter(|e| !e.answers_all());
    let software: u128 = software.map(|e| u128::from(e.flow.traffic)).sum();
    assert_eq!(o.software, software);
    let u = o.usage();
    let free = u.acl_size - u.acl_used;
    for (id, e) in &o.flows {
        if e.state.stand != Stand::Full || e.lines(Stand::Acl { wide: true }) > free {
            continue;
        }
        // It may be that it would push others out of the MAC table, for which there is no room
        let pushed = o.flows.values().any(|g| {
            g.state.stand == Stand::Mac
                && o.order.cmp(g.place, e.place).is_lt()
                && e.rows.iter().any(|r| meet(&r.fields, &g.flow.fields))
        });
        let mut depends = false;
        let _ = o
            .sensitive
            .meets(&o.order, &e.value, &e.mask, e.place, Side::Front, |_| {
                depends = true;
                ControlFlow::Break(())
            });
        if depends {
            continue;
        }
        let mut more = o.clone();
        let entry = more.flows.get_mut(id).unwrap();
        (entry.acl_denied, entry.class_denied) = (false, e.writes && !o.pair_fits(e));
        more.wake(*id);
        more.run();
        assert!(
            pushed || more.acl_used > u.acl_size || more.mac_used > u.mac_size,
            "flow {id} fits into {free}: {:?}",
            e.flow
        );
    }
}
