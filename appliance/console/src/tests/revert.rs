// SPDX-License-Identifier: Apache-2.0
//! What is not confirmed is as it was before: in time, at a word, and after a power cut.

use std::time::{Duration, Instant};

use super::Bench;
use crate::session::{Door, Session};
use crate::{STARTUP, lock};

const NONE: &str = "%No Rollback Confirmed Change pending\n";
const KEPT: &str = "revert-config";

/// One with VLAN 5, in the middle of a change to VLAN 6.
fn changing() -> Bench {
    let mut bench = Bench::new();
    bench.set(&["vlan 5"]);
    assert_eq!(
        bench.say("configure terminal revert timer 2"),
        "Rollback Confirmed Change: Backing up current running config to flash:revert-config\n\
         Rollback Confirmed Change: Rollback will begin in 2 minutes.\n\
         Enter \"configure confirm\" if you wish to keep what you've configured\n\
         Enter configuration commands, one per line.  End with CNTL/Z.\n"
    );
    bench.quiet(&["no vlan 5", "vlan 6", "end"]);
    bench
}

fn vlans(bench: &Bench) -> Vec<u16> {
    bench.config().vlans.into_keys().collect()
}

fn is_kept(bench: &Bench) -> bool {
    bench.files.0.lock().unwrap().contains_key(KEPT)
}

#[test]
fn what_is_confirmed_stays() {
    let mut bench = changing();
    let shown = bench.say("show archive config rollback timer");
    assert!(
        shown.contains("Timer type: absolute timer\nTimer value: 2 min\n"),
        "{shown}"
    );
    assert!(is_kept(&bench));
    assert_eq!(bench.say("configure confirm"), "");
    assert!(!is_kept(&bench));
    lock(&bench.switch).reverts.expire();
    for line in [
        "configure confirm",
        "configure revert now",
        "configure revert timer 3",
        "show archive config rollback timer",
    ] {
        assert_eq!(bench.say(line), NONE, "{line}");
    }
    assert_eq!(vlans(&bench), [6]);
}

#[test]
fn what_is_not_confirmed_in_time_is_as_it_was_though_the_session_is_over() {
    let mut bench = changing();
    // the session ends, and another one sees to it
    bench.session = Session::new(bench.switch.clone(), Door::cli());
    bench.quiet(&["configure revert timer 5"]);
    let shown = bench.say("show archive config rollback timer");
    assert!(shown.contains("Timer value: 5 min\n"), "{shown}");
    assert_eq!(vlans(&bench), [6]);
    lock(&bench.switch).reverts.expire();
    let begun = Instant::now();
    while is_kept(&bench) && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    // the file goes before its turn is over
    let turn = crate::turns::Turn::take(&bench.switch, "a test", Duration::from_secs(60));
    drop(turn.unwrap());
    assert_eq!(vlans(&bench), [5]);
    assert_eq!(bench.say("configure confirm"), NONE);
}

#[test]
fn at_a_word() {
    let mut bench = changing();
    let said = bench.say("configure revert now");
    assert!(
        said.contains("-vlan 6\n") && said.contains("+vlan 5\n"),
        "{said}"
    );
    assert!(said.ends_with("Rollback Done\n"), "{said}");
    assert_eq!(vlans(&bench), [5]);
    assert!(!is_kept(&bench));
}

#[test]
fn one_at_a_time() {
    let mut bench = changing();
    let said = bench.say("configure terminal revert timer 1");
    assert!(said.contains("is to be confirmed first"), "{said}");
    assert_eq!(
        bench.session.prompt(),
        "Switch#",
        "it is not in configuration mode"
    );
    let said = bench.say("delete /force flash:revert-config");
    assert!(said.starts_with("% configure confirm"), "{said}");
    assert!(is_kept(&bench));
    // nobody else writes it
    bench.say("copy running-config flash:revert-config");
    let said = bench.say("");
    assert!(said.starts_with("% revert-config is what"), "{said}");
    // what could not be removed is a file as any other when nothing waits for a word
    bench.say("configure confirm");
    let left = (KEPT.to_string(), String::from("vlan 9\n"));
    bench.files.0.lock().unwrap().insert(left.0, left.1);
    assert_eq!(bench.say("delete /force flash:revert-config"), "");
    assert!(!is_kept(&bench));
}

/// What is refused on the way back stays, is said, and is tried again.
#[test]
fn a_way_back_that_is_refused_is_no_confirmation() {
    let mut bench = changing();
    bench.fake.lock().unwrap().refuse = Some((5, "no room"));
    let said = bench.say("configure revert now");
    assert_eq!(said, "% no room\n% Nothing is reverted\n");
    assert!(is_kept(&bench));
    assert_eq!(vlans(&bench), [6]);
    bench.fake.lock().unwrap().refuse = None;
    bench.say("configure revert now");
    assert_eq!(vlans(&bench), [5]);
}

#[test]
fn a_start_begins_with_what_was_before() {
    let mut bench = changing();
    bench.say("write memory");
    let fresh = Bench::new();
    *fresh.files.0.lock().unwrap() = bench.files.0.lock().unwrap().clone();
    let (config, said) = {
        let switch = lock(&fresh.switch);
        crate::startup(&switch.store, &*switch.engine)
    };
    assert_eq!(said, Vec::<String>::new());
    lock(&fresh.switch).begin(config);
    assert_eq!(vlans(&fresh), [5]);
    // once
    assert!(!is_kept(&fresh));
    assert!(fresh.files.0.lock().unwrap().contains_key(STARTUP));
    // the command reload is a start as well
    bench.say("reload");
    assert!(bench.session.line("").closed);
    assert_eq!(vlans(&bench), [5]);
    assert!(!is_kept(&bench));
}

#[test]
fn a_configuration_that_is_replaced_until_it_is_confirmed() {
    let mut bench = Bench::new();
    bench.set(&["vlan 5"]);
    let file = |name: &str, text: &str| {
        let (name, text) = (name.to_string(), text.to_string());
        bench.files.0.lock().unwrap().insert(name, text);
    };
    file("a", "vlan 7\n");
    file("bad", "vlan 7\nnonsense\n");
    file("banner", "banner motd ^C\n% all may look\n^C\nvlan 7\n");
    // of what was not done nothing is to be confirmed
    let said = bench.say("configure replace flash:bad force revert trigger error timer 3");
    assert!(said.contains("nothing is replaced"), "{said}");
    assert_eq!(bench.say("configure confirm"), NONE);
    for (line, answer) in [
        ("configure replace flash:a force time 3", None),
        (
            "configure replace flash:a revert trigger error timer 3",
            Some("y"),
        ),
    ] {
        let mut said = bench.say(line);
        if let Some(answer) = answer {
            said = bench.say(answer);
        }
        assert!(said.contains("Rollback will begin in 3 minutes"), "{said}");
        assert_eq!(vlans(&bench), [7]);
        bench.say("configure revert now");
        assert_eq!(vlans(&bench), [5]);
    }
    // a line of a banner is no refusal
    bench.say("configure replace flash:banner force time 3");
    assert_eq!(vlans(&bench), [7]);
    bench.say("configure revert now");
    assert_eq!(vlans(&bench), [5]);
    // without a time it stays
    bench.say("configure replace flash:a force revert trigger error");
    assert_eq!(bench.say("configure confirm"), NONE);
    assert_eq!(vlans(&bench), [7]);
}
