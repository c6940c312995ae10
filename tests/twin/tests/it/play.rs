//! The kept recordings, played; and proof that a play can fail.

use std::path::Path;
use std::sync::Arc;

use tandem_twin::coverage::violations;
use tandem_twin::kernel::Prepared;
use tandem_twin::play::{Shelf, Variant, play};
use tandem_twin::recording::Recording;
use tandem_twin::shrink::{Kept, shrink};
use tandem_twin::tally::Tally;

/// Recordings and kept failures of the folder `recordings`.
fn kept() -> Vec<(String, Recording, Option<Variant>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings");
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "json") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        all.push(match serde_json::from_str::<Kept>(&text) {
            Ok(kept) => (name, kept.recording, Some(kept.variant)),
            Err(_) => (name, Recording::parse(&text).unwrap(), None),
        });
    }
    all.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(!all.is_empty());
    all
}

/// A recording of routes with next-hop objects.
fn routes() -> Recording {
    let found = kept().into_iter().find(|k| k.0 == "routes");
    found.unwrap().1
}

#[test]
fn kept_recordings_pass() {
    let mut shelf = Shelf::default();
    let mut all = Tally::default();
    for (name, recording, variant) in kept() {
        let prepared = Arc::new(Prepared::new(recording));
        let drawn = (0..60).map(Variant::draw);
        for v in variant.into_iter().chain([Variant::plain()]).chain(drawn) {
            match play(&prepared, &v, &mut shelf) {
                Ok(tally) => all.add(&tally),
                Err(e) => panic!("{name}: {e}\n{}", serde_json::to_string(&v).unwrap()),
            }
        }
    }
    assert_eq!(violations(&all.cells), [""; 0]);
    // it was no empty play
    assert!(all.exact[0] > 1000 && all.exact[1] > 100, "{all:?}");
    assert!(
        all.trapped[0] > 100 && all.restarts[0] > 0 && all.restarts[1] > 0,
        "{all:?}"
    );
}

/// A chip that does not take the end of its replay is attached again: its tables outlive that, and where they do not it is dark.
#[test]
fn who_is_attached_again_has_its_tables() {
    let prepared = Arc::new(Prepared::new(routes()));
    let mut shelf = Shelf::default();
    for seed in 0..30 {
        let plain = Variant::plain();
        let variant = Variant {
            seed,
            faults: tandem_twin::chip::Faults {
                lost: 300,
                ..plain.faults
            },
            restarts: [1000, 0],
            between: 2,
            ..plain
        };
        let played = play(&prepared, &variant, &mut shelf);
        assert!(played.is_ok(), "seed {seed}: {played:?}");
    }
}

/// The plain variant fails.
fn fails(recording: Recording) -> bool {
    let prepared = Arc::new(Prepared::new(recording));
    play(&prepared, &Variant::plain(), &mut Shelf::default()).is_err()
}

#[test]
fn a_lost_notification_is_seen() {
    let whole = routes();
    assert!(!fails(whole.clone()));
    let mut seen = 0;
    for step in 1..whole.steps.len() {
        for place in 0..whole.steps[step].told.len() {
            let mut less = whole.clone();
            less.steps[step].told.remove(place);
            seen += u32::from(fails(less));
        }
    }
    // some say what others say as well
    assert!(seen >= 1);
}

/// What a recording has of files is what the listener reads.
#[test]
fn a_recorded_file_is_read() {
    let mut tables = routes();
    assert!(!fails(tables.clone()));
    let path = "/proc/thread-self/net/ip_tables_names".to_owned();
    // nothing is forwarded where legacy tables are: more goes to the CPU than a big chip may send there
    tables.steps[0].files.insert(path, "filter\n".into());
    assert!(fails(tables));
}

#[test]
fn another_answer_is_seen_and_made_small() {
    let mut wrong = routes();
    let last = wrong.steps.len() - 1;
    let forwarded = |a: &tandem_twin::recording::Answer| a.out.len() == 1 && !a.out[0].made;
    let answers = &mut wrong.steps[last].answers;
    let probe = answers.iter().position(forwarded).unwrap();
    answers[probe].out[0].frame.0[20] ^= 1;
    // some chips give this packet to the CPU
    let mut shrunk = (0..20).map(|seed| shrink(&wrong, &Variant::draw(seed)));
    let (kept, failure) = shrunk.find(|(_, failure)| failure.is_some()).unwrap();
    let failure = failure.unwrap();
    assert_eq!(failure.probe, Some(0), "{failure}");
    assert_eq!(
        (kept.recording.probes.len(), kept.recording.steps.len()),
        (1, 2)
    );
    assert_eq!(kept.variant.faults, Default::default());
}
