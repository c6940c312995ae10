//! What a netlink request can end in.

use std::io;

/// What the kernel refused, or what the socket could not do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{request}: {}{}", io::Error::from_raw_os_error(*errno), if extack.is_empty() { String::new() } else { format!(" ({extack})") })]
pub struct Error {
    /// What was asked.
    pub request: &'static str,
    /// `errno`, positive.
    pub errno: i32,
    /// The kernel's own words (extended ack); may be empty.
    pub extack: String,
}

impl Error {
    pub(super) fn io(request: &'static str, e: &io::Error) -> Self {
        Self {
            request,
            errno: e.raw_os_error().unwrap_or(libc::EIO),
            extack: String::new(),
        }
    }

    pub(super) fn protocol(request: &'static str, extack: &str) -> Self {
        Self {
            request,
            errno: libc::EPROTO,
            extack: extack.to_owned(),
        }
    }

    /// The object asked for was not there (any more).
    #[must_use]
    pub const fn is_gone(&self) -> bool {
        matches!(self.errno, libc::ENOENT | libc::ESRCH | libc::ENODEV)
    }
}

impl From<Error> for io::Error {
    fn from(e: Error) -> Self {
        Self::new(Self::from_raw_os_error(e.errno).kind(), e)
    }
}

/// `Result` with this module's error.
pub type Result<T> = std::result::Result<T, Error>;
