// SPDX-License-Identifier: Apache-2.0
//! Sessions that copy frames, and limits of what floods.

use super::Bench;

#[test]
fn sessions_are_what_was_typed() {
    let mut bench = Bench::new();
    bench.set(&[
        "monitor session 1 source interface gi1/0/1",
        "monitor session 1 source interface gi1/0/2 rx",
        "monitor session 1 destination interface gi1/0/5",
        "monitor session 2 source interface gi1/0/3 tx",
    ]);
    assert_eq!(
        bench.say("show running-config | include monitor"),
        "monitor session 1 source interface GigabitEthernet1/0/1\n\
         monitor session 1 source interface GigabitEthernet1/0/2 rx\n\
         monitor session 2 source interface GigabitEthernet1/0/3 tx\n\
         monitor session 1 destination interface GigabitEthernet1/0/5\n"
    );
    assert_eq!(
        bench.say("show monitor session 1"),
        "Session 1\n---------\n\
         Type                   : Local Session\n\
         Source Ports           :\n    \
         RX Only            : Gi1/0/2\n    \
         Both               : Gi1/0/1\n\
         Destination Ports      : Gi1/0/5\n    \
         Encapsulation      : Native\n          \
         Ingress      : Disabled\n\n"
    );
    assert_eq!(
        bench.say("show monitor session 9"),
        "Session 9 is not configured\n"
    );
    bench.say("conf t");
    for (line, why) in [
        (
            "monitor session 2 source interface gi1/0/5",
            "% GigabitEthernet1/0/5 is the destination of session 1\n",
        ),
        (
            "monitor session 2 destination interface gi1/0/5",
            "% GigabitEthernet1/0/5 is the destination of session 1\n",
        ),
        (
            "monitor session 2 destination interface gi1/0/1",
            "% GigabitEthernet1/0/1 is a source of session 1\n",
        ),
    ] {
        assert_eq!(bench.say(line), why, "{line}");
    }
    bench.quiet(&[
        "no monitor session 1 source interface gi1/0/1 rx",
        "no monitor session 2",
    ]);
    assert_eq!(
        bench.say("no monitor session 1 source interface gi1/0/2"),
        ""
    );
    let sessions = bench.config().sessions;
    assert_eq!(sessions.len(), 1);
    let ways: Vec<_> = sessions[&1]
        .sources
        .values()
        .map(|w| (w.rx, w.tx))
        .collect();
    assert_eq!(ways, [(false, true)]);
    bench.quiet(&["no monitor session all", "end"]);
    assert_eq!(
        bench.say("show monitor"),
        "No SPAN configuration is present in the system.\n"
    );
}

#[test]
fn limits_are_what_was_typed() {
    let mut bench = Bench::new();
    bench.set(&[
        "interface gi1/0/1",
        "storm-control broadcast level 20",
        "storm-control multicast level 0.5",
        "storm-control unicast level bps 1000000",
        "interface gi1/0/2",
        "storm-control broadcast level pps 500",
    ]);
    assert_eq!(
        bench.say("show running-config | include storm"),
        " storm-control broadcast level 20.00\n \
         storm-control multicast level 0.50\n \
         storm-control unicast level bps 1000000\n \
         storm-control broadcast level pps 500\n"
    );
    let key = (super::port(1), "storm-control broadcast".into());
    bench.fake.lock().unwrap().policed = [(key, [1, 77])].into();
    assert_eq!(
        bench.say("show storm-control broadcast"),
        "Key: U - Unicast, B - Broadcast, M - Multicast\n\
         Interface  Filter State            Upper     Dropped  Type\n\
         ---------  -------------  --------------  ----------  ----\n\
         Gi1/0/1    Forwarding             20.00%          77  B   \n\
         Gi1/0/2    Link Down             500 pps           0  B   \n"
    );
    bench.say("conf t");
    bench.quiet(&["interface gi1/0/1"]);
    for level in ["100.01", "1.", ".5", "1.234", "-1", "x", "1000"] {
        let said = bench.say(&format!("storm-control broadcast level {level}"));
        assert_eq!(said, "% The level is 0.00 to 100.00\n", "{level}");
    }
    bench.quiet(&["no storm-control broadcast level", "interface vlan 1"]);
    assert_eq!(
        bench.say("storm-control broadcast level 1"),
        "% Command rejected: Vlan1 not a switching port.\n"
    );
}
