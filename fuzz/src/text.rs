//! Files that people write: they load, or there is one line that says why not.

use tandem_firmware::Profile;

/// A chip's profile, switchd's file, and a plan of faults: what loads is a chip that can be made.
pub(crate) fn toml(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Err(e) = tandem_switchd::args::check_file(text) {
        one_line(&e.to_string());
    }
    if let Err(e) = tandem_asicd::api::fault::plan(text) {
        one_line(&e);
    }
    match Profile::parse(text, "a file") {
        Ok(profile) => {
            let ports = profile.port_count();
            assert!((1..=1024).contains(&ports), "{ports} ports");
            profile
                .queues
                .config(ports)
                .expect("queues of a profile that loads");
            let small = [profile.lpm4.size, profile.lpm6.size]
                .iter()
                .all(|n| *n <= 1 << 12)
                && profile.exact.geometry().size() <= 1 << 12;
            if small {
                tandem_firmware::Firmware::new(profile).expect("a chip of a profile that loads");
            }
        }
        Err(e) => one_line(&e.to_string()),
    }
}

fn one_line(text: &str) {
    assert!(!text.trim().is_empty() && !text.contains('\n'), "{text:?}");
}
