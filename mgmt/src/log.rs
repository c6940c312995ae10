//! What a daemon is to log, as its command line says it.

use std::fmt::Write as _;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer};

/// Is told warnings and errors (`true`), in one line each. It must not log.
pub type Also = Box<dyn Fn(bool, &str) + Send + Sync>;

/// Refuses, in one line, what is neither a level nor a filter: `tracing`'s reader takes any other word for the name of a
/// module, and the daemon says nothing more.
pub fn check(filter: &str) -> Result<(), String> {
    let is_level = |word: &str| {
        ["error", "warn", "info", "debug", "trace", "off"]
            .iter()
            .any(|level| word.eq_ignore_ascii_case(level))
    };
    if filter
        .split(',')
        .all(|word| is_level(word) || word.contains('='))
    {
        return Ok(());
    }
    Err(format!(
        "log {filter}: wanted error, warn, info, debug, trace or off, or a filter such as info,tandem_ports=debug"
    ))
}

/// Has all that passes the filter written to stderr, each line with its module if these are `named`.
pub fn start(filter: &str, named: bool) -> Result<(), String> {
    start_also(filter, named, None)
}

/// The same, and has `also` told what is a warning or an error.
pub fn start_also(filter: &str, named: bool, also: Option<Also>) -> Result<(), String> {
    check(filter)?;
    let read = EnvFilter::try_new(filter).map_err(|e| format!("log {filter}: {e}"))?;
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_target(named)
        // a full disk loses log lines, and nothing else: told of on the same descriptor, that would be a panic
        .log_internal_errors(false);
    tracing_subscriber::registry()
        .with(read)
        .with(lines)
        .with(also.map(Told))
        .init();
    Ok(())
}

/// A layer that tells somebody else.
struct Told(Also);

impl<S: Subscriber> Layer<S> for Told {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let level = *event.metadata().level();
        if level <= Level::WARN {
            let mut text = Text::default();
            event.record(&mut text);
            (self.0)(level == Level::ERROR, &text.0);
        }
    }
}

/// The message, then other fields with their names.
#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self.0, "{value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_told_elsewhere() {
        use std::sync::{Arc, Mutex};
        let told = Arc::<Mutex<Vec<(bool, String)>>>::default();
        let to = Arc::clone(&told);
        let also: Also = Box::new(move |error, text| to.lock().unwrap().push((error, text.into())));
        let all = tracing_subscriber::registry().with(Told(also));
        tracing::subscriber::with_default(all, || {
            tracing::info!("not this");
            tracing::warn!(n = 5, "one {}", 1);
            tracing::error!("two");
        });
        let told = told.lock().unwrap();
        assert_eq!(*told, [(false, "one 1 n=5".into()), (true, "two".into())]);
    }

    #[test]
    fn a_word_that_would_silence_a_daemon_is_refused() {
        for good in ["warn", "INFO", "off", "info,tandem_ports=debug", "a=trace"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in [
            "warning",
            "eror",
            "",
            "info,",
            "tandem_ports",
            "a=debug,eror",
        ] {
            let e = check(bad).unwrap_err();
            assert!(e.contains("wanted error, warn") && !e.contains('\n'), "{e}");
        }
    }
}
