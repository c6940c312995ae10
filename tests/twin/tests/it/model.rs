//! The model against what the kernel did: the kept recordings. No root, no kernel.

use std::path::{Path, PathBuf};

use tandem_twin::history::History;
use tandem_twin::model;
use tandem_twin::normal::{LEVELS, Level, difference_at};
use tandem_twin::recording::Recording;
use tandem_twin::shrink::Kept;

/// Whole recordings: a kept failure is what is left of one, its steps joined.
fn kept() -> Vec<(PathBuf, Recording)> {
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings");
    let mut files: Vec<PathBuf> = [recordings.clone(), recordings.join("model")]
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap())
        .map(|f| f.unwrap().path())
        .filter(|f| f.extension().is_some_and(|e| e == "json"))
        .collect();
    files.sort();
    let read = |f: PathBuf| {
        let text = std::fs::read_to_string(&f).unwrap();
        if serde_json::from_str::<Kept>(&text).is_ok() {
            return None;
        }
        Some((f, Recording::parse(&text).unwrap()))
    };
    files.into_iter().filter_map(read).collect()
}

/// Errnos, dumps, notifications in their order, answers: all as the kernel's. Only what the model says it does not know is
/// left out, and these are named here.
#[test]
fn kept_recordings_are_what_the_model_does() {
    let mut compared = 0;
    for (file, recording) in kept() {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let model = match model::again(&recording) {
            Ok(model) => model,
            Err(e) => {
                assert!(REFUSED.contains(&name.as_str()), "{name}: {e}");
                continue;
            }
        };
        assert!(!REFUSED.contains(&name.as_str()), "{name} is known now");
        for level in LEVELS {
            assert_eq!(
                difference_at(level, &recording, &model),
                None,
                "{name}: {level:?}"
            );
        }
        compared += 1;
    }
    assert!(compared >= 2, "{compared} recordings were compared");
}

/// Their kernel had devices in each namespace that the model's has not; the last one has packets of IPv6.
const REFUSED: [&str; 3] = [
    "alias-of-a-replaced-nexthop",
    "routes",
    "preferred-source-in-a-dump",
];

/// What is compared can differ: each level finds what was falsified in it, and the others do not.
#[test]
fn what_is_falsified_is_found() {
    let mut known = (0..).filter_map(|seed| model::record(&History::draw(seed, &[])).ok());
    let good = known.next().unwrap();
    let answered = |a: &tandem_twin::recording::Answer| !a.out.is_empty();
    for level in LEVELS {
        let mut bad = good.clone();
        for step in &mut bad.steps[1..] {
            match level {
                Level::Errnos => step.command.as_mut().unwrap().errno = 77,
                Level::Dumps => step.dumps[0].data[0].0[16 + 8] ^= 1,
                Level::Notifications => step.told.clear(),
                Level::Answers => {
                    let answer = step.answers.iter_mut().find(|a| answered(a)).unwrap();
                    answer.out[0].port += 1;
                }
                Level::Files => step.files.clear(),
            }
        }
        for other in LEVELS {
            let found = difference_at(other, &good, &bad);
            assert_eq!(
                found.is_some(),
                other == level,
                "{other:?} of {level:?}: {found:?}"
            );
        }
    }
}

/// What the model does not know it does not answer.
#[test]
fn what_is_not_known_is_refused() {
    let refused = (0..200)
        .map(|seed| History::draw(seed, &[]))
        .filter_map(|history| model::record(&history).err());
    let words: Vec<String> = refused.map(|e| e.to_string()).collect();
    assert!(words.iter().any(|w| w == "history holds IPv6"), "{words:?}");
    let bridged = (0..20).map(|seed| History::draw(seed, &["bridge".to_owned()]));
    let bridged = bridged.filter(|h| h.topology.iter().any(|op| op.text.contains("br1")));
    for history in bridged {
        assert!(model::record(&history).is_err(), "{}", history.seed);
    }
}

/// A kernel before 6.16 takes ways by the hash alone; a newer one prefers a way of the packet's source address.
#[test]
fn an_older_kernel_is_another() {
    let differ = |seed: &u64| {
        let history = History::draw(*seed, &[]);
        let (new, old) = (
            model::record(&history),
            model::record_as(&history, "6.12.117"),
        );
        let (Ok(new), Ok(old)) = (new, old) else {
            return false;
        };
        for level in [Level::Errnos, Level::Dumps, Level::Notifications] {
            assert_eq!(difference_at(level, &new, &old), None, "seed {seed}");
        }
        difference_at(Level::Answers, &new, &old).is_some()
    };
    let found = (0..2400).filter(differ).count();
    assert!((1..100).contains(&found), "{found}");
}
