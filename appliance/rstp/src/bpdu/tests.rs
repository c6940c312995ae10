// SPDX-License-Identifier: Apache-2.0
//! Octets by hand, and frames of any kind.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use proptest::prelude::*;

const SOURCE: [u8; 6] = [2, 0, 0, 0, 0, 9];

fn sample() -> Info {
    Info {
        vector: Vector {
            root: BridgeId::new(4096, [2, 0, 0, 0, 0, 1]),
            cost: 20_000,
            bridge: BridgeId::new(32_768, [2, 0, 0, 0, 0, 2]),
            port: PortId::new(128, 3),
        },
        times: Times {
            message_age: 256,
            max_age: 20 * 256,
            hello: 2 * 256,
            forward_delay: 15 * 256,
        },
        topology_change: true,
        topology_change_ack: false,
    }
}

/// The octets of `sample` behind the flags, as clause 9.3.1 orders them.
const PARAMETERS: [u8; 30] = [
    0x10, 0, 2, 0, 0, 0, 0, 1, 0, 0, 0x4e, 0x20, 0x80, 0, 2, 0, 0, 0, 0, 2, 0x80, 3, 1, 0, 20, 0,
    2, 0, 15, 0,
];

#[test]
fn an_rst_bpdu_octet_by_octet() {
    let rapid = Rapid {
        role: SentRole::Designated,
        proposal: true,
        agreement: false,
        learning: true,
        forwarding: false,
    };
    let bpdu = Bpdu::Rst(sample(), rapid);
    let frame = bpdu.to_frame(SOURCE);
    let mut wanted = vec![
        1, 0x80, 0xc2, 0, 0, 0, 2, 0, 0, 0, 0, 9, 0, 39, 0x42, 0x42, 3, 0, 0, 2, 2,
    ];
    wanted.push(0b0001_1111);
    wanted.extend(PARAMETERS);
    wanted.push(0);
    wanted.resize(60, 0);
    assert_eq!(frame, wanted);
    assert_eq!(Bpdu::from_frame(&frame), Ok(bpdu));
}

#[test]
fn a_config_bpdu_and_a_tcn_bpdu_octet_by_octet() {
    let info = Info {
        topology_change_ack: true,
        ..sample()
    };
    let frame = Bpdu::Config(info).to_frame(SOURCE);
    let mut wanted = vec![
        1, 0x80, 0xc2, 0, 0, 0, 2, 0, 0, 0, 0, 9, 0, 38, 0x42, 0x42, 3, 0, 0, 0, 0,
    ];
    wanted.push(0b1000_0001);
    wanted.extend(PARAMETERS);
    wanted.resize(60, 0);
    assert_eq!(frame, wanted);
    assert_eq!(Bpdu::from_frame(&frame), Ok(Bpdu::Config(info)));

    let frame = Bpdu::Tcn.to_frame(SOURCE);
    assert_eq!(frame[12..21], [0, 7, 0x42, 0x42, 3, 0, 0, 0, 0x80]);
    assert_eq!(Bpdu::from_frame(&frame), Ok(Bpdu::Tcn));
}

/// What is wrong is named: clause 9.3.4.
#[test]
fn malformed_ones_are_refused() {
    let good = Bpdu::Config(sample()).to_frame(SOURCE);
    let but = |at: usize, octet: u8| {
        let mut frame = good.clone();
        frame[at] = octet;
        Bpdu::from_frame(&frame)
    };
    assert_eq!(but(5, 1), Err(Malformed::NotForBridges));
    assert_eq!(but(12, 8), Err(Malformed::NoLength));
    assert_eq!(but(14, 0xaa), Err(Malformed::NoBridgeLlc));
    assert_eq!(but(13, 37), Err(Malformed::Short), "34 octets of BPDU");
    assert_eq!(but(13, 200), Err(Malformed::Short), "longer than the frame");
    assert_eq!(but(18, 7), Err(Malformed::Protocol(7)));
    assert_eq!(but(20, 9), Err(Malformed::Type(9)));
    assert_eq!(but(20, 2), Err(Malformed::Type(2)), "RST of version 0");
    assert_eq!(but(44, 20), Err(Malformed::TooOld), "as old as max age");
    assert!(but(44, 19).is_ok());
    for len in 0..52 {
        assert_eq!(
            Bpdu::from_frame(&good[..len]),
            Err(Malformed::Short),
            "{len}"
        );
    }
}

/// Padding, whatever is in it, and a version of the future are no reason to refuse.
#[test]
fn what_comes_behind_is_not_looked_at() {
    let rapid = rapid(0);
    let mut frame = Bpdu::Rst(sample(), rapid).to_frame(SOURCE);
    frame[13] = 46;
    frame[19] = 4;
    frame[53..].fill(0xff);
    frame.extend([0xff; 40]);
    assert_eq!(Bpdu::from_frame(&frame), Ok(Bpdu::Rst(sample(), rapid)));
}

/// An RST BPDU of 35 octets is too short by one.
#[test]
fn an_rst_bpdu_has_36_octets() {
    let mut frame = Bpdu::Rst(sample(), rapid(0)).to_frame(SOURCE);
    frame[13] = 38;
    assert_eq!(Bpdu::from_frame(&frame), Err(Malformed::Short));
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_octets_panic(octets in prop::collection::vec(any::<u8>(), 0..80)) {
        let _ = Bpdu::from_octets(&octets);
        let _ = Bpdu::from_frame(&octets);
    }

    /// What is read is written the same, and read the same again.
    #[test]
    fn what_is_read_is_written(
        kind in prop::sample::select(vec![(0, 0), (2, 2)]),
        rest in prop::collection::vec(any::<u8>(), 32..40),
    ) {
        let mut octets = vec![0, 0, kind.0, kind.1];
        octets.extend(rest);
        if let Ok(bpdu) = Bpdu::from_octets(&octets) {
            prop_assert_eq!(Bpdu::from_frame(&bpdu.to_frame(SOURCE)), Ok(bpdu));
        }
    }
}
