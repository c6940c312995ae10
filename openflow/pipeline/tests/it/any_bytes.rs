// SPDX-License-Identifier: Apache-2.0
//! Any bytes are a frame: nothing panics, nothing is read or written outside, whatever is done to it.

use crate::common;
use crate::common::{Net, apply, switch};
use proptest::prelude::*;
use tandem_ofpipeline::flows::blank;
use tandem_ofpipeline::key::Key;
use tandem_ofpipeline::parse::parse;
use tandem_openflow::model::FlowMod;
use tandem_openflow::{Action, Field, Oxm, Version, port};
use tandem_packet::{Frame, Offload};

/// Bytes that often look like headers.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let ethertype = prop::sample::select(vec![
        0x0800u16, 0x86dd, 0x0806, 0x8847, 0x88e7, 0x8100, 0x88a8, 0x0010,
    ]);
    let first = prop::sample::select(vec![0x45u8, 0x46, 0x4f, 0x60, 0, 0xaa]);
    let protocol = prop::sample::select(vec![0u8, 1, 4, 6, 17, 41, 43, 44, 51, 58, 60, 132]);
    let rest = prop::collection::vec(any::<u8>(), 0..160);
    (
        rest,
        prop::collection::vec(ethertype, 1..4),
        first,
        protocol,
        any::<bool>(),
    )
        .prop_map(|(rest, types, first, protocol, raw)| {
            if raw {
                return rest;
            }
            let mut f = vec![2; 12];
            for (n, t) in types.iter().enumerate() {
                f.extend(t.to_be_bytes());
                if n + 1 < types.len() {
                    f.extend([0x20, 5]);
                }
            }
            let at = f.len();
            f.extend(rest);
            if let Some(b) = f.get_mut(at) {
                *b = first;
            }
            for place in [6, 9] {
                if let Some(b) = f.get_mut(at + place) {
                    *b = protocol;
                }
            }
            f
        })
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let settable: Vec<Field> = Field::ALL.into_iter().filter(|f| f.settable()).collect();
    let set = (prop::sample::select(settable), any::<u128>()).prop_map(|(field, value)| {
        Action::SetField {
            field,
            value: value & field.all_ones() | if field == Field::VlanVid { 0x1000 } else { 0 },
        }
    });
    let other = prop::sample::select(vec![
        Action::CopyTtlIn,
        Action::CopyTtlOut,
        Action::SetMplsTtl(0),
        Action::DecMplsTtl,
        Action::SetNwTtl(255),
        Action::DecNwTtl,
        Action::PushVlan(0x88a8),
        Action::PopVlan,
        Action::PushMpls(0x8848),
        Action::PopMpls(0x0800),
        Action::PopMpls(0x8100),
        Action::PushPbb(0x88e7),
        Action::PopPbb,
        Action::SetVlanVid10(7),
        Action::SetVlanPcp10(7),
        Action::StripVlan10,
        Action::SetNw10 { dst: true, addr: 1 },
        Action::SetNwTos10(0xff),
        Action::SetTp10 {
            dst: false,
            port: 0,
        },
        Action::Output {
            port: port::ALL,
            max_len: 0,
        },
        Action::Output {
            port: port::CONTROLLER,
            max_len: 9,
        },
    ]);
    prop::collection::vec(prop_oneof![set, other], 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn parse_any_bytes(b in bytes(), old: bool) {
        let version = if old { Version::V10 } else { Version::V13 };
        let mut key = Key::default();
        let lay = parse(&b, version, &mut key);
        prop_assert_eq!(lay.is_none(), b.len() < 14);
        if let Some(lay) = lay {
            for at in [lay.net_at, lay.type_at, lay.proto_at, lay.l4_at, lay.sum_at, lay.body_at, lay.end, lay.sll_at, lay.tll_at] {
                prop_assert!(at as usize <= b.len(), "{lay:?}");
            }
        }
        // The same bytes, the same key; another key before does not shine through
        let mut again = Key([u64::MAX; tandem_ofpipeline::key::WORDS]);
        parse(&b, version, &mut again);
        if lay.is_some() {
            again.0[..3].copy_from_slice(&key.0[..3]);
            prop_assert_eq!(again, key);
        }
    }

    /// 1.0's flows are not checked against their match, so that all actions come to all packets.
    #[test]
    fn rewrite_any_bytes(b in bytes(), list in actions(), room in 0usize..40, behind in 0usize..40) {
        let mut s = switch(Version::V10);
        let mut list = list;
        list.push(Action::Output { port: 2, max_len: 0 });
        let m = FlowMod { instructions: apply(&list), ..blank() };
        s.flow_mod(&m, 0, &mut Vec::new()).unwrap();
        let mut mem = vec![0; room];
        mem.extend(&b);
        mem.extend(vec![0; behind]);
        let mut frame = Frame::new(&mut mem, room, room + b.len(), Offload::NONE);
        let mut net = Net::default();
        s.process(&mut frame, 1, 0, &mut net);
        // What is not sent was too short, or its TTL was used up
        let ttl = list.iter().any(|a| matches!(a, Action::DecMplsTtl | Action::DecNwTtl));
        prop_assert!(!net.0.is_empty() || b.len() < 14 || ttl);
    }

    /// Any match is refused or kept, and found again by itself.
    #[test]
    fn any_match(fields in prop::collection::vec((0u8..40, any::<u128>(), any::<u128>()), 0..5)) {
        let mut s = switch(Version::V13);
        let fields: Vec<Oxm> = fields
            .into_iter()
            .filter_map(|(f, v, m)| Some(Oxm { field: Field::of(f)?, value: v & m, mask: m }))
            .collect();
        let m = FlowMod { matching: common::matching(&fields), ..blank() };
        if s.flow_mod(&m, 0, &mut Vec::new()).is_ok() {
            let filter = tandem_openflow::model::FlowFilter { matching: m.matching.clone(), ..tandem_ofpipeline::flows::all_flows() };
            prop_assert_eq!(common::flow_stats(&s, &filter).len(), 1);
        }
    }
}
