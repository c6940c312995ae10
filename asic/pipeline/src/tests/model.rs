//! The pipeline against a naive model: vectors searched from end to end, one `if` after the other.

use proptest::prelude::*;
use tandem_abi::raw;

use crate::entry::{Action, RouteTarget};
use crate::testkit::Answer::{Cpu, Drop, Tx};
use crate::testkit::*;
use crate::{DropReason, State};

/// 96 cases each, or PROPTEST_CASES.
fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    let given = std::env::var_os("PROPTEST_CASES").is_some();
    ProptestConfig {
        failure_persistence: None,
        cases: if given { default.cases } else { 96 },
        ..default
    }
}

proptest! {
    #![proptest_config(config())]

    /// A learning bridge: stations talk at random; every answer is the model's, which remembers where each was last.
    #[test]
    fn learning_bridge(talk in proptest::collection::vec((1u16..=4, 1u16..20, 1u16..20), 1..200)) {
        let mut s = bridge(4);
        let mut seen: Vec<(u16, u16)> = Vec::new();
        for (port, src, dst) in talk {
            seen.retain(|(m, _)| *m != src);
            seen.push((src, port));
            let want = match seen.iter().find(|(m, _)| *m == dst) {
                Some((_, p)) if *p == port => Drop(DropReason::SamePort),
                Some((_, p)) => Tx(vec![*p]),
                None => Tx((1..=4).filter(|p| *p != port).collect()),
            };
            let f = ether(mac(dst), mac(src), 0x88b5, &[0; 46]);
            prop_assert_eq!(run(&mut s, port, &f), want);
        }
    }

    /// A router: the longest prefix wins, hosts win over prefixes, and the TTL decides last.
    #[test]
    fn longest_prefix(
        routes in proptest::collection::vec((any::<u32>(), 0u8..=32, 0u32..5), 0..40),
        probes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u32>(), 0u8..4), 1..60),
    ) {
        let mut s = router(4);
        let mut model: Vec<(u32, u8, u32)> = Vec::new();
        for (addr, plen, what) in routes {
            // inside 64/4: never martian, never one of the router's own nets
            let addr = 0x4000_0000 | addr >> 4;
            let mask = u32::MAX.checked_shl(32 - u32::from(plen)).unwrap_or(0);
            let addr = addr & mask;
            let target = match what {
                0 => RouteTarget::Trap(raw::TND_TRAP_ROUTE as u8),
                1 => RouteTarget::Drop,
                n => RouteTarget::Nexthop(s.nexthop_slot(n).unwrap()),
            };
            route4(&mut s, addr.to_be_bytes(), plen, target);
            model.retain(|(a, l, _)| (*a, *l) != (addr, plen));
            model.push((addr, plen, what));
        }
        for (near, noise, ttl) in probes {
            let base = if model.is_empty() { 0x4000_0000 } else { model[near.index(model.len())].0 };
            let dst = base ^ noise >> (noise % 28 + 4);
            let dst = 0x4000_0000 | dst & 0x0fff_ffff;
            let best = model
                .iter()
                .filter(|(a, l, _)| (dst ^ a) & u32::MAX.checked_shl(32 - u32::from(*l)).unwrap_or(0) == 0)
                .max_by_key(|(_, l, _)| *l);
            let want = match best {
                None => Cpu(raw::TND_TRAP_LPM_MISS),
                Some((_, _, 0)) => Cpu(raw::TND_TRAP_ROUTE),
                Some((_, _, 1)) => Drop(DropReason::Blackhole),
                Some(_) if ttl <= 1 => Cpu(raw::TND_TRAP_TTL),
                Some((_, _, n)) => Tx(vec![*n as u16]),
            };
            let f = udp4(router_mac(1), mac(1), [10, 0, 1, 9], dst.to_be_bytes(), ttl, 9);
            prop_assert_eq!(run(&mut s, 1, &f), want, "to {:?}", dst.to_be_bytes());
        }
    }

    /// Flooding: exactly the members that are up, forwarding, not kept apart and not the sender.
    #[test]
    fn flooding(
        states in proptest::collection::vec((any::<bool>(), any::<bool>(), any::<bool>(), 0u8..5, any::<bool>()), 6),
        ingress in 1u16..=6,
        kind in 0usize..3,
    ) {
        let flag = [raw::TND_PORT_FLOOD_UC, raw::TND_PORT_FLOOD_MC, raw::TND_PORT_FLOOD_BC][kind];
        let mut s = bridge(6);
        s.set_vlan(1, crate::state::VlanConfig { flags: raw::TND_VLAN_LEARNING, ageing_s: 0 }).unwrap();
        for (i, (up, floods, isolated, stp, member)) in states.iter().enumerate() {
            let port = i as u16 + 1;
            let c = s.port(port).unwrap().config;
            let mut flags = c.flags & !(flag | raw::TND_PORT_ISOLATED);
            if *floods { flags |= flag; }
            if *isolated { flags |= raw::TND_PORT_ISOLATED; }
            let stp_state = if port == ingress { raw::TND_STP_FORWARDING } else { *stp };
            s.set_port(port, crate::state::PortConfig { flags, stp_state, ..c }).unwrap();
            if port != ingress {
                s.set_link(port, *up).unwrap();
                if !member { s.remove_member(port, raw::TND_VID_ANY); }
            }
        }
        let from_isolated = states[usize::from(ingress) - 1].2;
        let want: Vec<u16> = states.iter().enumerate()
            .map(|(i, st)| (i as u16 + 1, st))
            .filter(|(p, (up, floods, isolated, stp, member))| *p != ingress && *up && *floods && *member
                && *stp == raw::TND_STP_FORWARDING && !(*isolated && from_isolated))
            .map(|(p, _)| p)
            .collect();
        let want = if want.is_empty() { Drop(DropReason::NoFloodPort) } else { Tx(want) };
        let dst = [mac(99), [1, 0, 0x5e, 9, 9, 9], [0xff; 6]][kind];
        prop_assert_eq!(run(&mut s, ingress, &ether(dst, mac(1), 0x88b5, &[0; 46])), want);
    }

    /// Whatever the chip did with a frame, doing it again gives the same answer once the source is learned.
    #[test]
    fn answers_repeat(seed in 1u64..) {
        let mut r = super::fuzz::Rng(seed);
        let mut s: State = router(3);
        fdb(&mut s, 1, mac(1), 1, Action::Forward, 0);
        let mut f = Vec::new();
        let off = super::fuzz::frame(&mut r, &mut f, 1);
        let first = run_with(&mut s, 1, &f, off, 0);
        let second = run_with(&mut s, 1, &f, off, 0);
        prop_assert_eq!(first.1, second.1);
        prop_assert_eq!(first.0.tx, second.0.tx);
    }
}
