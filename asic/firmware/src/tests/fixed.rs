//! Classes that are there from the start: lamps and counters of ports, counters of groups, storm control.

use super::*;
use raw::*;

#[test]
fn lamps_and_counters_of_ports() {
    let mut fw = chip("tiny");
    let f = &mut fw;
    let led = |port, blink| tnd_led {
        struct_size: size_of::<tnd_led>() as u16,
        port,
        blink,
        ..Default::default()
    };
    assert_eq!(
        op(f, TND_OP_UPDATE, TND_CLS_LED, &led(2, 1)).status,
        TND_ST_OK
    );
    assert_eq!((f.blinks(1), f.blinks(2)), (false, true));
    assert_eq!(
        op(f, TND_OP_UPDATE, TND_CLS_LED, &led(9, 1)).status,
        TND_ST_NOENT
    );
    assert_eq!(
        op(f, TND_OP_UPDATE, TND_CLS_LED, &led(2, 2)).status,
        TND_ST_INVALID
    );
    f.attach(true);
    assert!(f.blinks(2), "a warm attach changes nothing");
    f.attach(false);
    assert!(!f.blinks(2));

    f.tx_dropped[8] = 5;
    let all: Vec<tnd_port_stats> = dump(f, TND_OP_DUMP, TND_CLS_PORT_STATS, 1 << 10);
    assert_eq!(
        all.iter().map(|s| s.port).collect::<Vec<_>>(),
        (1..=8).collect::<Vec<_>>()
    );
    let one = tnd_cmd {
        arg: 8,
        out_size: size_of::<tnd_port_stats>() as u32,
        ..cmd(TND_OP_DUMP, TND_CLS_PORT_STATS)
    };
    let (cpl, out) = run(f, &one, &[]);
    assert_eq!((cpl.status, cpl.out_count, cpl.result), (TND_ST_OK, 1, 0));
    let row = tnd_port_stats::read_from_bytes(&out).unwrap();
    assert_eq!((row.port, row.tx_dropped), (8, 5));
}

/// Counters of groups: dumped and asked for one by one, read only.
#[test]
fn group_counters_are_read_only() {
    let f = &mut chip("tiny");
    assert_eq!(create(f, TND_CLS_RIF, &rif(1, 0, 1)), TND_ST_OK);
    for id in 1..=3 {
        assert_eq!(create(f, TND_CLS_NEXTHOP, &nexthop(id, 1)), TND_ST_OK);
    }
    for (id, members) in [(7, &[(1, 1), (2, 3)][..]), (8, &[(3, 1)])] {
        assert_eq!(
            run(f, &cmd(TND_OP_CREATE, TND_CLS_NHG), &nhg(id, members))
                .0
                .status,
            TND_ST_OK
        );
    }
    let (cpl, all) = run(f, &cmd(TND_OP_DUMP, TND_CLS_NHG_STATS), &[]);
    assert_eq!(
        (cpl.status, cpl.out_count, all.len()),
        (TND_ST_OK, 2, 8 + 2 * 16 + 8 + 16)
    );
    let asked = |nhg| tnd_nhg_stats {
        struct_size: 8,
        nhg,
        ..Default::default()
    };
    let (cpl, one) = run(
        f,
        &cmd(TND_OP_QUERY, TND_CLS_NHG_STATS),
        asked(7).as_bytes(),
    );
    assert_eq!((cpl.status, cpl.out_count), (TND_ST_OK, 1));
    assert_eq!(one, all[..8 + 2 * 16]);
    let second = tnd_nhg_member_stats::read_from_bytes(&one[24..]).unwrap();
    assert_eq!((second.nexthop, second.packets), (2, 0));
    let status = |f: &mut Firmware, c: &tnd_cmd, nhg| run(f, c, asked(nhg).as_bytes()).0.status;
    let query = cmd(TND_OP_QUERY, TND_CLS_NHG_STATS);
    assert_eq!(status(f, &query, 9), TND_ST_NOENT);
    let small = tnd_cmd {
        out_size: 39,
        ..query
    };
    assert_eq!(status(f, &small, 7), TND_ST_NO_OUTPUT);
    assert_eq!(
        status(f, &cmd(TND_OP_UPDATE, TND_CLS_NHG_STATS), 7),
        TND_ST_UNSUPPORTED
    );
}

#[test]
fn storm_control_is_there_from_the_start() {
    let mut fw = chip("tiny");
    let f = &mut fw;
    let storm = |port, kind, rate_packets, burst_packets| tnd_storm {
        struct_size: size_of::<tnd_storm>() as u16,
        port,
        kind,
        rate_packets,
        burst_packets,
        ..Default::default()
    };
    let set = |f: &mut Firmware, s: tnd_storm| op(f, TND_OP_UPDATE, TND_CLS_STORM, &s).status;
    assert_eq!(set(f, storm(2, TND_STORM_BROADCAST, 100, 10)), TND_ST_OK);
    assert_eq!(set(f, storm(2, TND_STORM_UNKNOWN_UC, 5, 1)), TND_ST_OK);
    for (bad, status) in [
        (storm(9, 1, 100, 10), TND_ST_NOENT),
        (storm(2, 0, 100, 10), TND_ST_NOENT),
        (storm(2, 4, 100, 10), TND_ST_NOENT),
        (storm(2, 1, 100, 0), TND_ST_INVALID),
        (storm(2, 1, u64::MAX, 1), TND_ST_INVALID),
    ] {
        assert_eq!(set(f, bad), status, "{bad:?}");
    }
    let all: Vec<tnd_storm> = dump(f, TND_OP_DUMP, TND_CLS_STORM, 1 << 10);
    let seen: Vec<_> = all
        .iter()
        .map(|s| (s.port, s.kind, s.rate_packets, s.burst_packets))
        .collect();
    assert_eq!(seen, [(2, 1, 100, 10), (2, 3, 5, 1)]);
    // without a limit again: nothing to tell
    assert_eq!(set(f, storm(2, TND_STORM_UNKNOWN_UC, 0, 7)), TND_ST_OK);
    f.attach(true);
    let all: Vec<tnd_storm> = dump(f, TND_OP_DUMP, TND_CLS_STORM, 1 << 10);
    assert_eq!(all.len(), 1, "a warm attach changes nothing");
    f.attach(false);
    let all: Vec<tnd_storm> = dump(f, TND_OP_DUMP, TND_CLS_STORM, 1 << 10);
    assert!(all.is_empty());
}
