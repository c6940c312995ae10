// SPDX-License-Identifier: Apache-2.0
//! Classes, and policies of them.

use super::Bench;

const LINES: &[&str] = &[
    "class-map match-any GOLD",
    "match access-group name VOICE",
    "match dscp 46",
    "match access-group 10",
    "policy-map IN",
    "class class-default",
    "police 1000000",
    "class GOLD",
    "police 8000 10000 conform-action transmit exceed-action drop",
    "interface gi1/0/1",
    "service-policy input IN",
];

#[test]
fn a_policy_is_what_was_typed() {
    let mut bench = Bench::new();
    bench.set(LINES);
    let text = bench.say("show running-config | section class-map|policy");
    assert_eq!(
        text,
        "class-map match-any GOLD\n \
         match access-group 10\n \
         match access-group name VOICE\n \
         match dscp ef\n\
         policy-map IN\n \
         class GOLD\n  \
         police 8000 10000 conform-action transmit exceed-action drop\n \
         class class-default\n  \
         police 1000000 conform-action transmit exceed-action drop\n \
         service-policy input IN\n"
    );
    assert_eq!(
        bench.say("show policy-map"),
        "  Policy Map IN\n    Class GOLD\n     \
         police 8000 10000 conform-action transmit exceed-action drop\n    \
         Class class-default\n     police 1000000 conform-action transmit exceed-action drop\n"
    );
    assert_eq!(
        bench.say("show class-map GOLD"),
        " Class Map match-any GOLD\n   Match access-group 10\n   \
         Match access-group name VOICE\n   Match dscp ef\n\n"
    );
    let key = (super::port(1), "class GOLD".into());
    bench.fake.lock().unwrap().policed = [(key, [5, 7])].into();
    let shown = bench.say("show policy-map interface gi1/0/1");
    assert_eq!(
        shown,
        " GigabitEthernet1/0/1\n\n  Service-policy input: IN\n\n    \
         Class-map: GOLD (match-any)\n      police:\n          rate 8000 bps, burst 10000 bytes\n        \
         conformed 5 packets; actions:\n          transmit\n        \
         exceeded 7 packets; actions:\n          drop\n    \
         Class-map: class-default (match-any)\n      police:\n          rate 1000000 bps\n        \
         conformed 0 packets; actions:\n          transmit\n        \
         exceeded 0 packets; actions:\n          drop\n\n"
    );
    assert_eq!(bench.say("show policy-map interface"), shown);
    assert_eq!(bench.say("show policy-map interface gi1/0/2"), "");
    // in and out of the modes
    bench.say("conf t");
    bench.quiet(&["policy-map IN", "class GOLD"]);
    assert_eq!(bench.session.prompt(), "Switch(config-pmap-c)#");
    bench.quiet(&["no police", "exit"]);
    assert_eq!(bench.session.prompt(), "Switch(config-pmap)#");
    bench.quiet(&["no class GOLD", "exit"]);
    assert_eq!(bench.session.prompt(), "Switch(config)#");
    assert_eq!(bench.config().policies["IN"].classes.len(), 1);
    for (line, why) in [
        (
            "class-map match-all GOLD",
            "% Class GOLD is of the other kind: remove it first\n",
        ),
        (
            "class-map class-default",
            "% class-default is what no other class has met\n",
        ),
    ] {
        assert_eq!(bench.say(line), why, "{line}");
    }
    bench.quiet(&["class-map GOLD"]);
    assert_eq!(
        bench.say("match dscp 64"),
        "% A DSCP is 0 to 63, or a word\n"
    );
    bench.quiet(&["no match dscp ef", "interface vlan 1"]);
    assert_eq!(
        bench.say("service-policy input IN"),
        "% Command rejected: Vlan1 not a switching port.\n"
    );
    bench.quiet(&[
        "interface gi1/0/1",
        "no service-policy input",
        "no policy-map IN",
    ]);
    bench.quiet(&["no class-map GOLD", "end"]);
    assert_eq!(bench.say("show policy-map"), "");
    assert!(!bench.config().interfaces.contains_key(&super::port(1)));
}
