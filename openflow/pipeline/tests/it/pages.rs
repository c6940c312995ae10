// SPDX-License-Identifier: Apache-2.0
//! Lists of flows, page by page, while flows change.

use crate::common;
use crate::common::{output, switch};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use tandem_ofpipeline::Switch;
use tandem_ofpipeline::flows::{all_flows, blank};
use tandem_openflow::model::{FlowCommand, FlowFilter, FlowMod};
use tandem_openflow::{Field, Oxm, Version};

/// Flow `n`, its cookie: of three masks, three tables, and some of one match and several priorities.
fn flow(n: u64, command: FlowCommand) -> FlowMod {
    let key = u128::from(n / 4);
    let fields = match n % 3 {
        0 => vec![Oxm::exact(Field::EthDst, key)],
        1 => vec![
            Oxm::exact(Field::EthDst, key),
            Oxm::exact(Field::EthType, 0x0800),
        ],
        _ => vec![],
    };
    FlowMod {
        command,
        table: (n % 3) as u8,
        priority: 1 + n as u16,
        cookie: n,
        instructions: output(2),
        matching: common::matching(&fields),
        ..blank()
    }
}

fn change(s: &mut Switch, m: &FlowMod) {
    s.flow_mod(m, 0, &mut Vec::new()).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// One that is there from the first page to the last, changed or added again though it may be, is told once; what comes
    /// or goes meanwhile may be told.
    #[test]
    fn what_stands_is_told_once(
        looks in prop_oneof![1u32..4, 20u32..80],
        takes in 1usize..20,
        filter in 0..4,
        changes in proptest::collection::vec((0u64..80, 0..4, 0..4), 1..200),
    ) {
        let mut s = switch(Version::V13);
        for n in (0..80).filter(|n| n % 4 != 1) {
            change(&mut s, &flow(n, FlowCommand::Add));
        }
        // Gaps, as numbers are used again
        for n in (0..80).filter(|n| n % 4 == 2) {
            change(&mut s, &flow(n, FlowCommand::DeleteStrict));
        }
        let stands = |n: u64| matches!(n % 4, 0 | 3);
        let filter = match filter {
            0 => all_flows(),
            1 => FlowFilter { cookie: 1, cookie_mask: 1, ..all_flows() },
            2 => FlowFilter {
                matching: common::matching(&[Oxm::exact(Field::EthDst, 3)]),
                ..all_flows()
            },
            _ => FlowFilter { table: 2, ..all_flows() },
        };
        let meant = |n: u64| {
            let m = flow(n, FlowCommand::Add);
            let asked = filter.matching.fields.iter().all(|f| m.matching.fields.contains(f));
            asked && (n ^ filter.cookie) & filter.cookie_mask == 0 && [255, m.table].contains(&filter.table)
        };
        let mut told: BTreeMap<u64, u32> = BTreeMap::new();
        let (mut from, mut changes) = (Some(0), changes.into_iter());
        while let Some(at) = from {
            let mut left = takes;
            from = s.flow_page(&filter, at, looks, |f| {
                *told.entry(f.flow.cookie).or_default() += 1;
                left -= 1;
                if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            prop_assert!(from.is_none_or(|next| next > at));
            for (n, command, more) in changes.by_ref() {
                change(&mut s, &flow(n, match command {
                    0 => FlowCommand::ModifyStrict,
                    1 if !stands(n) => FlowCommand::DeleteStrict,
                    _ => FlowCommand::Add,
                }));
                if more == 0 {
                    break;
                }
            }
        }
        for (n, times) in &told {
            prop_assert!(meant(*n), "{}", n);
            prop_assert!(*times == 1 || !stands(*n), "{} {} times", n, times);
        }
        for n in (0..80).filter(|n| stands(*n) && meant(*n)) {
            prop_assert!(told.contains_key(&n), "{}", n);
        }
    }
}

/// One match has up to 65,536 flows, one of each priority: no more are looked at in one go than of any others.
#[test]
fn many_priorities_of_one_match_are_many_flows() {
    let exact = [Oxm::exact(Field::EthDst, 1)];
    let mut s = switch(Version::V13);
    for priority in 1..=100 {
        common::add(&mut s, priority, &exact, output(2));
    }
    for fields in [&exact[..], &[]] {
        let filter = FlowFilter {
            matching: common::matching(fields),
            ..all_flows()
        };
        let mut told = 0;
        let next = s.flow_page(&filter, 0, 10, |_| {
            told += 1;
            ControlFlow::Continue(())
        });
        assert_eq!((told, next), (10, Some(10)));
    }
}
