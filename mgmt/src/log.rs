//! What a daemon is to log, as its command line says it.

use tracing_subscriber::EnvFilter;

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
    check(filter)?;
    let read = EnvFilter::try_new(filter).map_err(|e| format!("log {filter}: {e}"))?;
    tracing_subscriber::fmt()
        .with_env_filter(read)
        .with_writer(std::io::stderr)
        .with_target(named)
        // a full disk loses log lines, and nothing else: told of on the same descriptor, that would be a panic
        .log_internal_errors(false)
        .init();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check;

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
