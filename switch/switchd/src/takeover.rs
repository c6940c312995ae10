//! What a switchd finds at its start: the ports, their programs, and what an earlier one has left there.

use std::os::fd::AsFd;

use tandem_linux::eventfd::EventFd;
use tandem_linux::netlink::tc::Tc;
use tandem_sal::PlatformPort;

use crate::forward_mark::ForwardMark;
use crate::ports::{self, Keeper, Port};

/// Something is kept under this name as long as `learning` is to be turned on again.
const RELEARN: &str = "relearn";

/// Makes the ports or takes them over, and marks what is forwarded. True: a switchd of before had turned `learning` off at
/// them, and that is to be undone; [`relearned`] says when it was.
///
/// # Errors
/// One line.
pub fn take(
    map: &[PlatformPort],
    keeper: &mut dyn Keeper,
    mark: &mut ForwardMark,
    tc: &mut Tc,
) -> anyhow::Result<(Vec<Port>, bool)> {
    ports::let_go(map, keeper)?;
    // the ports come first: where there is room for nothing else (an asicd of before keeps 256 names), the programs do without
    let ports = map.iter().map(|p| Port::open(p, keeper));
    let ports: Vec<Port> = ports.collect::<anyhow::Result<_>>()?;
    mark.settle(keeper)?;
    let relearn = is_due(&ports, keeper, tc)?;
    for port in &ports {
        port.attach_mark(mark, tc)?;
    }
    mark.settled(keeper)?;
    Ok((ports, relearn))
}

/// What says so are the names of programs that are about to be replaced: until it is done the keeper knows, whoever dies.
fn is_due(ports: &[Port], keeper: &mut dyn Keeper, tc: &mut Tc) -> anyhow::Result<bool> {
    let mut due = keeper.get(RELEARN)?.is_some();
    for port in ports {
        due = due || ForwardMark::had_learning_off(tc, port.ifindex)?;
    }
    if due && let Err(e) = keeper.keep(RELEARN, EventFd::new()?.as_fd()) {
        tracing::warn!("{e}: should this end at once, `learning` stays off");
    }
    Ok(due)
}

/// `learning` is on again.
///
/// # Errors
/// One line: whoever starts next turns it on once more.
pub fn relearned(keeper: &mut dyn Keeper) -> anyhow::Result<()> {
    keeper.forget(RELEARN)
}
