//! What a service manager wants to know (systemd's sd_notify(3)).

use sd_notify::NotifyState;

/// Tells who started this process that what others wait for is there, with a line for `systemctl status`. Nobody asked: nothing
/// happens.
pub fn ready(status: &str) {
    if let Err(e) = sd_notify::notify(&[NotifyState::Ready, NotifyState::Status(status)]) {
        tracing::warn!("the service manager can't be told that this is ready: {e}");
    }
}

/// Tells it that this process ends because it was asked to.
pub fn stopping() {
    // it asked itself, or it is gone
    let _ = sd_notify::notify(&[NotifyState::Stopping]);
}
