// SPDX-License-Identifier: Apache-2.0
//! Flows that wait for their turn.
use super::model::PRESENT;
use crate::tables::{self, MacLookup};
use crate::{
    Act, Chain, Change, Flow, Offload, PortMask, Rewrite, Second, Share, Tagging, Wanted, Why,
};
use tandem_openflow::{Field, Oxm};

/// A flow that could be a pair, and is none though there is room, says why not.
#[test]
fn a_pair_that_waits_for_its_turn_says_so() {
    let mut chip = tables::vsc9953(MacLookup::Vlan);
    if let Some(c) = &mut chip.class {
        c.groups = 3;
    }
    let mut o = Offload::new(chip);
    for n in 0..4 {
        let rewrite = Rewrite {
            vid: Some(7),
            ..Rewrite::default()
        };
        let ports = PortMask::one(2);
        let flow = Flow {
            priority: 5,
            fields: vec![Oxm::exact(Field::VlanVid, PRESENT | (2 + u128::from(n)))],
            wanted: Wanted::Act(Act::Out { ports, rewrite }),
            idle: false,
            counted: false,
            traffic: 1,
        };
        o.add(n, flow);
    }
    let said = |o: &Offload, id| o.why(id).unwrap().to_string();
    let why = said(&o, 3);
    assert!(why.ends_with("but all 3 groups have a flow"), "{why}");
    // one has gone, and nobody was decided since
    o.leave(0);
    let why = said(&o, 3);
    let waits = "but there is room by now, and it waits for its turn";
    assert!(why.ends_with(waits), "{why}");
    let needs = o.why(3).unwrap().needs().unwrap();
    assert!(needs.contains("looked at again"), "{needs}");
    o.decide();
    assert!(matches!(o.why(3), Some(Why::Pair { .. })));
}

/// A flow of two forms that wants something else has none of its ports, however often that is said; and all of them when it
/// wants the same again.
#[test]
fn forms_are_those_of_what_a_flow_wanted_first() {
    let mut chip = tables::vsc9953(MacLookup::Vlan);
    if let Some(c) = &mut chip.class {
        c.forms = 1;
    }
    let mut o = Offload::new(chip);
    let goes = Rewrite {
        tag: Tagging::Goes,
        ..Rewrite::default()
    };
    let first = Wanted::Act(Act::port(2));
    let flow = Flow {
        priority: 5,
        fields: vec![Oxm::exact(Field::VlanVid, PRESENT | 1)],
        wanted: first,
        idle: false,
        counted: false,
        traffic: 1,
    };
    let second = Some(Second {
        ports: PortMask::one(3),
        rewrite: goes,
    });
    let chain = Chain {
        second,
        ..Chain::default()
    };
    let id = 0;
    o.batch(vec![Change::Add { id, flow, chain }]);
    let mut is = |wanted, idle, share| {
        o.batch(vec![Change::Modify {
            id,
            wanted,
            idle,
            counted: false,
        }]);
        assert_eq!(o.share(id), Some(share), "{wanted:?} {idle}");
    };
    is(first, true, Share::Whole);
    let other = Wanted::Act(Act::port(4));
    is(other, false, Share::Nothing);
    is(other, true, Share::Nothing);
    is(first, true, Share::Whole);
    // Where there are lines for none it says how many there are
    o.resize_forms(0);
    let why = o.why(id).unwrap().to_string();
    assert!(why.ends_with("but the chip has no lines for it"), "{why}");
    assert_eq!(o.resize_forms(0), Vec::new());
    o.resize_forms(5);
    assert_eq!((o.usage().forms_size, o.usage().forms_used), (1, 1));
}
