//! A look at everything, by itself: what an audit compares with.

use tandem_core::source::SourceError;
use tandem_linux::netlink::{self as nl, Dump, Family, Step};
use tandem_store::model::{Event, Object};

use super::convert::Ports;
use super::kernel::Questions;
use super::listener::{ATTEMPTS, DUMPS, is_absent};
use super::sysctl;
use super::view::KernelView;

/// A full dump by itself.
pub(super) fn snapshot(
    requests: &mut dyn Questions,
    ports: &Ports,
) -> Result<Vec<Object>, SourceError> {
    let mut view = KernelView::settled(ports.clone());
    let mut out = Vec::new();
    let mut sink = |event: Event| {
        if let Event::Upsert(_, object) = event {
            out.push(object);
        }
    };
    view.begin_full(&mut sink);
    for what in DUMPS {
        match steady_objects(requests, what) {
            Ok(objects) => objects.into_iter().for_each(|o| view.dumped(o, &mut sink)),
            Err(e) if is_absent(&e) => {}
            Err(e) => return Err(super::error(&e)),
        }
    }
    for what in view.filter_dumps() {
        match steady_objects(requests, what) {
            Ok(objects) => objects.into_iter().for_each(|o| view.dumped(o, &mut sink)),
            Err(e) if is_absent(&e) => {}
            Err(e) => return Err(super::error(&e)),
        }
    }
    let ipsec = requests.ipsec_policies().unwrap_or(false);
    let read = |path: &str| requests.file(path);
    view.settings(sysctl::settings(ipsec, &read), &mut sink);
    let redirects = sysctl::redirects(view.interfaces(), &read);
    view.redirects(redirects, &mut sink);
    let without6 = sysctl::without_ipv6(view.interfaces(), &read);
    view.without_ipv6(without6, &mut sink);
    Ok(out)
}

/// A dump, repeated until the kernel does not call it interrupted.
fn whole(requests: &mut dyn Questions, what: Dump) -> nl::Result<Vec<nl::Object>> {
    for _ in 0..ATTEMPTS {
        let mut all = Vec::new();
        requests.begin(what)?;
        loop {
            match requests.step(&mut |o| all.push(o))? {
                Step::More => {}
                Step::Done { interrupted: false } => return Ok(all),
                Step::Done { interrupted: true } => break,
            }
        }
    }
    Err(nl::Error {
        request: "dump for the audit",
        errno: libc::EINTR,
        extack: format!("interrupted {ATTEMPTS} times, try again"),
    })
}

/// A dump, and of IPv6 routes one that another agrees with (see `dump_steady`).
fn steady_objects(requests: &mut dyn Questions, what: Dump) -> nl::Result<Vec<nl::Object>> {
    let mut objects = whole(requests, what)?;
    if matches!(what, Dump::Routes(Family::V6, _)) {
        for _ in 0..ATTEMPTS {
            let again = whole(requests, what)?;
            let agrees = again == objects;
            objects = again;
            if agrees {
                break;
            }
        }
    }
    Ok(objects)
}
