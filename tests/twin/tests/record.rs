//! The recorder against the kernel that runs here. Needs root: without it each test says so and passes. A program of
//! its own: how long it waits for the kernel is by the clock, which the plays beside it would take their time from.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;

use tandem_twin::fold;
use tandem_twin::history::{BRIDGES, COMMANDS, History, Op, PROBES, STILL_BRIDGES};
use tandem_twin::normal;
use tandem_twin::player::Player;
use tandem_twin::recording::Recording;

/// `None` (said aloud) when not root.
fn player() -> Option<Player> {
    if std::fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) != 0) {
        eprintln!("skipped: making network namespaces needs root");
        return None;
    }
    Some(Player::open(0).unwrap())
}

#[test]
fn a_history_recorded_twice_is_the_same() {
    let (Some(mut one), Some(mut other)) = (player(), player()) else {
        return;
    };
    let mut constructs = BTreeSet::new();
    // commands and refused ones, of most histories and of rare ones
    let mut said = [[0; 2]; 2];
    let have = [one.have(), &[BRIDGES, STILL_BRIDGES].map(str::to_owned)].concat();
    for seed in 0..30 {
        let history = History::draw(seed, &have);
        let before = one.counts();
        let a = one.record(&history).unwrap();
        let now = one.counts();
        let of = &mut said[usize::from(seed % 4 == 3)];
        of[0] += now.commands - before.commands;
        of[1] += now.refused - before.refused;
        let b = other.record(&history).unwrap();
        assert_eq!(normal::difference(&a, &b), None, "seed {seed}");
        assert!(a.steps.len() > COMMANDS && a.probes.len() >= PROBES);
        let outs = a.steps.iter().flat_map(|s| &s.answers).flat_map(|a| &a.out);
        for out in outs {
            constructs.insert((out.made, out.frame.0[12..14].to_vec()));
        }
        let text = serde_json::to_string(&a).unwrap();
        assert_eq!(Recording::parse(&text), Ok(a));
    }
    // copies and what the kernel made, of both families
    assert_eq!(constructs.len(), 4, "{constructs:?}");
    let counts = one.counts();
    // some nonsense, most is done; in rare histories about two of five commands are to be refused
    let [[commands, refused], [rare, vain]] = said;
    assert!(refused * 20 > commands, "{said:?}");
    assert!(refused * 5 < commands, "{said:?}");
    assert!(vain * 4 > rare && vain * 5 < rare * 3, "{said:?}");
    assert!(counts.answers * 10 > counts.probes, "{counts:?}");
    assert!(
        counts.spaces < 10,
        "what histories leave behind: {counts:?}"
    );
}

/// Where the kernel promises to tell there is no difference; where it does not, there are some, or nothing looked.
#[test]
fn what_is_told_is_there() {
    let Some(mut player) = player() else { return };
    let mut counts = fold::Counts::new();
    let have = [player.have(), &[BRIDGES.to_owned()]].concat();
    for seed in 1000..1040 {
        let history = History::draw(seed, &have);
        fold::count(&player.record(&history).unwrap(), &mut counts);
    }
    let tables: BTreeSet<&str> = counts.keys().map(|(table, ..)| *table).collect();
    for promised in ["address", "neighbour", "rule"] {
        assert!(!tables.contains(promised), "{counts:?}");
    }
    assert!(tables.contains("route4"), "{counts:?}");
}

/// What no message tells is read from files: all at first, then what changed. A recording twice compares them too.
#[test]
fn files_are_recorded() {
    let Some(mut player) = player() else { return };
    let policy = "ipv4/fib_multipath_hash_policy";
    let commands = vec![
        Op::sysctl(policy, "1"),
        Op::link(13, false),
        Op::sysctl("ipv6/conf/swp2/disable_ipv6", "1"),
    ];
    let history = History {
        commands,
        ..History::default()
    };
    let recording = player.record(&history).unwrap();
    let files: Vec<_> = recording.steps.iter().map(|s| &s.files).collect();
    let path = format!("/proc/sys/net/{policy}");
    assert_eq!(files[0][&path], "0\n");
    let redirects = "/proc/sys/net/ipv4/conf/swp4/send_redirects";
    assert_eq!(files[0][redirects], "0\n");
    assert_eq!(
        files[1].iter().collect::<Vec<_>>(),
        [(&path, &"1\n".to_owned())]
    );
    assert!(files[2].is_empty());
    let without6 = "/proc/sys/net/ipv6/conf/swp2/disable_ipv6".to_owned();
    assert_eq!(
        files[3].iter().collect::<Vec<_>>(),
        [(&without6, &"1\n".to_owned())]
    );
    // put back afterwards
    let again = player.record(&history).unwrap();
    assert_eq!(normal::difference(&recording, &again), None);
    let mut other = again.clone();
    other.steps[1].files.clear();
    assert!(
        normal::difference(&again, &other)
            .unwrap()
            .contains("files")
    );
}

/// A command that is not waited for after the answer shows: the recorder notices what comes later than the rest.
#[test]
fn links_are_waited_for() {
    let Some(mut player) = player() else { return };
    let history = History {
        commands: vec![Op::cable(2, false), Op::cable(2, true), Op::link(13, false)],
        probes: History::draw(0, &[]).probes,
        ..History::default()
    };
    let recording = player.record(&history).unwrap();
    for step in &recording.steps[1..] {
        assert!(!step.told.is_empty(), "{:?} is not told", step.command);
    }
}
