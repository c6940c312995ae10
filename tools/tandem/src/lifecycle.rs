//! `tandem up` and `tandem down`: starts and stops the daemons of an instance, and is idempotent.

use crate::args::{Daemon as DaemonArg, Up};
use crate::below::own_asicd;
use crate::config::{Config, alone, replace, save};
use crate::out::Out;
use crate::query::{seconds, status_of};
use crate::table::cell;
use crate::{Answer, Usage};
use anyhow::{Context, Result, anyhow, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tandem_mgmt::{Daemon, Instance};

const POLL: Duration = Duration::from_millis(20);
/// How long a daemon may take to end by itself.
const PATIENCE: Duration = Duration::from_secs(5);

/// Beside this program, else on the PATH.
fn program(name: &str) -> PathBuf {
    let beside = std::env::current_exe()
        .ok()
        .and_then(|p| Some(p.parent()?.join(name)));
    beside
        .filter(|p| p.is_file())
        .unwrap_or_else(|| name.into())
}

/// A daemon's last words: what it wrote to its log since `from`, the last line; of a refused command line what is wrong
/// with it, not the hint at --help that follows.
fn last_words(log: &Path, from: u64) -> String {
    let text = fs::read(log).unwrap_or_default();
    let new = text.get(from as usize..).unwrap_or_default();
    let text = String::from_utf8_lossy(new);
    let mut refused = text.lines().skip_while(|l| !l.starts_with("error: "));
    if let Some(first) = refused.next().and_then(|l| l.strip_prefix("error: ")) {
        // it may go on in indented lines: possible values, what is missing
        let more = refused.take_while(|l| !l.trim().is_empty()).map(str::trim);
        return std::iter::once(first)
            .chain(more)
            .collect::<Vec<_>>()
            .join(" ");
    }
    // std says how much it wanted, and then goes on about its backtrace
    let mut out_of_memory = text
        .lines()
        .filter(|l| l.starts_with("memory allocation of "));
    text.lines()
        .rev()
        .find(|l| !l.trim().is_empty())
        .map(|last| out_of_memory.next().unwrap_or(last))
        .unwrap_or("it said nothing")
        .trim()
        .to_owned()
}

/// Starts a daemon, which is this program, with its command line; how long its log was before.
pub fn start(
    instance: &Instance,
    words: &[String],
    daemon: Daemon,
    name: &str,
) -> Result<(Child, u64)> {
    let log = instance.log_file(daemon);
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&log)
        .with_context(|| format!("write {}", log.display()))?;
    let from = file.metadata()?.len();
    let mut command = command(instance, words, name);
    let child = command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        // out of the terminal's foreground group: ^C ends the shell's command, not the switch
        .process_group(0)
        .spawn()
        .with_context(|| format!("start {name} ({})", program(name).display()))?;
    Ok((child, from))
}

/// A daemon in its own working directory, with the same directory of instances as here.
fn command(instance: &Instance, words: &[String], name: &str) -> Command {
    let mut command = Command::new(program(name));
    command
        .args(words)
        .env("TANDEM_RUN", instance.base())
        // no folder is kept busy
        .current_dir("/");
    command
}

fn is_ready(daemon: Daemon, status: &Value) -> bool {
    match daemon {
        Daemon::Asicd | Daemon::Ofagentd | Daemon::Swcfgd => !status.is_null(),
        Daemon::Switchd => status.pointer("/sync/phase").is_some_and(|p| p == "steady"),
    }
}

/// A daemon's status; null: it does not answer, or is slow.
fn asked(instance: &Instance, daemon: Daemon) -> Value {
    match daemon {
        // its socket is the console's: who gets in there is served
        Daemon::Swcfgd => match UnixStream::connect(instance.socket(daemon)) {
            Ok(_) => json!({"pid": instance.running(daemon).ok().flatten()}),
            Err(_) => Value::Null,
        },
        daemon => status_of(instance, daemon).unwrap_or(Value::Null),
    }
}

/// Waits until a daemon that was started is ready; its status.
pub fn wait_ready(
    instance: &Instance,
    daemon: Daemon,
    child: &mut Child,
    from: u64,
    end: Instant,
) -> Result<Value> {
    loop {
        // a daemon that has just bound its socket may refuse or be slow; only its end or our time limit count
        let status = asked(instance, daemon);
        // nor is it ready because another one answers
        if is_ready(daemon, &status) && status["pid"] == child.id() {
            return Ok(status);
        }
        let log = instance.log_file(daemon);
        if let Some(code) = child.try_wait()? {
            // who is killed says nothing
            let killed = if code.signal() == Some(Signal::KILL.as_raw()) {
                "killed, by the kernel where memory ran out (dmesg says so); before: "
            } else {
                ""
            };
            let said = format!(
                "{daemon} ended ({code}): {killed}{} (log: {})",
                last_words(&log, from),
                log.display()
            );
            // what it was started with makes no sense: nor did what was typed here
            return Err(match code.code() {
                Some(2) => Usage(said).into(),
                _ => anyhow!(said),
            });
        }
        if Instant::now() > end {
            let phase = status
                .pointer("/sync/phase")
                .map_or_else(|| "no answer yet".to_owned(), cell);
            bail!(
                "{daemon} is not ready in time ({phase}); it goes on trying (log: {})",
                log.display()
            );
        }
        std::thread::sleep(POLL);
    }
}

/// The pid of a daemon that runs and is ready; waits for one that starts. One that has just been killed holds its
/// pid file for some more milliseconds and answers no more: that is none.
pub fn serving(instance: &Instance, daemon: Daemon, end: Instant) -> Result<Option<u32>> {
    while let Some(pid) = instance.running(daemon)? {
        let status = asked(instance, daemon);
        if is_ready(daemon, &status) {
            return Ok(Some(pid));
        }
        if Instant::now() > end {
            let log = instance.log_file(daemon);
            bail!(
                "{daemon} runs (pid {pid}) but is not ready (log: {})",
                log.display()
            );
        }
        std::thread::sleep(POLL);
    }
    Ok(None)
}

/// What swcfgd says of this kernel.
fn which_engine() -> Result<String> {
    let path = program("swcfgd");
    let asked = Command::new(&path)
        .arg("--which")
        .current_dir("/")
        .stdin(Stdio::null())
        // where it can't say, it says why
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("start swcfgd ({})", path.display()))?;
    Ok(String::from_utf8_lossy(&asked.stdout).into_owned())
}

/// Becomes a daemon in the foreground, with the configuration's command line.
fn become_daemon(
    instance: &Instance,
    config: &Config,
    daemon: Daemon,
    check: bool,
) -> Result<Answer> {
    let there = config.daemons().contains(&daemon);
    if check {
        return Ok(if there { Answer::Yes } else { Answer::No });
    }
    if !there {
        bail!(Usage(format!(
            "such a switch has no {daemon} of its own: engine kernel has"
        )));
    }
    let name = config.program(daemon);
    let path = program(name);
    let error = Command::new(&path)
        .args(config.words(instance, daemon))
        .exec();
    Err(error).with_context(|| format!("start {name} ({})", path.display()))
}

/// What is known of a switch that others started (systemd): its policy; for the rest it is taken as wanted.
fn not_started_by_up(instance: &Instance, wanted: &Config) -> Config {
    let mut running = wanted.clone();
    if wanted.policy.is_some()
        && let Ok(status) = status_of(instance, Daemon::Switchd)
        && let Some(policy) = status.pointer("/sync/policy").and_then(Value::as_str)
    {
        running.policy = Some(policy.to_owned());
    }
    running
}

/// `tandem up`
pub fn up(instance: &Instance, up: &Up, out: Out) -> Result<Answer> {
    let mut config = Config::resolve(instance, up)?;
    if let Some(daemon) = up.exec {
        return match daemon {
            DaemonArg::Asicd => become_daemon(instance, &config, Daemon::Asicd, up.check),
            DaemonArg::Switchd | DaemonArg::Swcfgd => {
                config.settle(which_engine)?;
                let daemon = match daemon {
                    DaemonArg::Swcfgd => Daemon::Swcfgd,
                    _ => Daemon::Switchd,
                };
                become_daemon(instance, &config, daemon, up.check)
            }
        };
    }
    let end = Instant::now() + seconds(up.timeout)?;
    instance.create_dir()?;
    let _alone = alone(instance, end)?;
    if up.is_bare() {
        // somebody else may have started it meanwhile, with other settings
        config = Config::resolve(instance, up)?;
    }
    let engine = config.settle(which_engine)?;
    if let Some((pid, _)) = own_asicd(instance)? {
        bail!(
            "asicd of instance {name} is ofagentd's (pid {pid}): tandem --name {name} openflow down first",
            name = instance.name()
        );
    }
    let asicd_runs = instance.running(Daemon::Asicd)?.is_some();
    let switchd_runs = instance.running(Daemon::Switchd)?.is_some();
    if asicd_runs || switchd_runs {
        let running = match Config::own(instance) {
            Ok(running) => running,
            Err(_) => not_started_by_up(instance, &config),
        };
        if let Some(other) = running.other_than(&config, asicd_runs, switchd_runs) {
            bail!(
                "instance {name} runs with {other}: tandem --name {name} down first",
                name = instance.name()
            );
        }
    }
    let mut actions: Vec<String> = engine.into_iter().collect();
    let last = fs::read(instance.config_file()).ok();
    let mut started = Vec::new();
    for daemon in config.daemons() {
        let name = config.program(daemon);
        if let Some(pid) = serving(instance, daemon, end)? {
            actions.push(format!("{name} runs already (pid {pid})"));
            continue;
        }
        let (mut child, from) = start(instance, &config.words(instance, daemon), daemon, name)?;
        let status = match wait_ready(instance, daemon, &mut child, from, end) {
            Ok(status) => status,
            Err(e) => {
                // no switch without its daemon: the chip that this call has started goes, too
                if matches!(child.try_wait(), Ok(Some(_))) && !started.is_empty() {
                    for (daemon, pid) in started.into_iter().rev() {
                        end_daemon(instance, daemon, pid)?;
                    }
                    // a start that failed is not what `tandem up` alone repeats
                    match &last {
                        Some(text) => replace(&instance.config_file(), text)?,
                        None => fs::remove_file(instance.config_file())?,
                    }
                }
                return Err(e);
            }
        };
        save(instance, &config)?;
        let detail = match daemon {
            Daemon::Asicd => format!(
                "chip {}, {} ports, {} cabled",
                config.profile(),
                cell(&status["ports"]),
                config.ports.len()
            ),
            Daemon::Switchd | Daemon::Swcfgd if name == "swcfgd" => {
                format!("its console: swcli --name {}", instance.name())
            }
            Daemon::Switchd | Daemon::Ofagentd | Daemon::Swcfgd => format!(
                "policy {}",
                status.pointer("/sync/policy").map(cell).unwrap_or_default()
            ),
        };
        started.push((daemon, child.id()));
        actions.push(format!("{name} started (pid {}): {detail}", child.id()));
    }
    report(instance, &actions, out)
}

/// `tandem port split` and `unsplit` (`parts`: none): switchd starts again with other netdevs, while the chip forwards on.
/// If it can't, it starts again as it was.
pub fn split(instance: &Instance, port: &str, parts: Option<u16>, out: Out) -> Result<Answer> {
    let end = Instant::now() + PATIENCE + PATIENCE;
    let none = || {
        format!(
            "switchd does not run for instance {}: tandem up, or tandem up --split",
            instance.name()
        )
    };
    // another call may be starting it again: that is waited for
    instance.running(Daemon::Switchd)?;
    if !instance.dir().is_dir() {
        bail!(none());
    }
    let _alone = alone(instance, end)?;
    let pid = serving(instance, Daemon::Switchd, end)?.with_context(none)?;
    if !instance.config_file().exists() {
        bail!(
            "instance {} was not started by tandem up: put {port} into [split] of its file and restart its switchd",
            instance.name()
        );
    }
    let before = Config::own(instance)?;
    if before.is_chip() {
        bail!(
            "instance {} has engine chip, which splits no ports",
            instance.name()
        );
    }
    if before.has_console() {
        bail!(
            "instance {name} has a console, which knows the ports that it began with: tandem --name {name} down, then up --split",
            name = instance.name()
        );
    }
    let mut config = before.clone();
    match parts {
        Some(parts) => {
            if let Some(have) = config.split.insert(port.to_owned(), parts) {
                bail!("{port} is split into {have} already: tandem port unsplit {port} first");
            }
        }
        None => {
            config
                .split
                .remove(port)
                .with_context(|| format!("{port} is not split"))?;
        }
    }
    end_daemon(instance, Daemon::Switchd, pid)?;
    let again = |config: &Config| {
        let (mut child, from) = start(
            instance,
            &config.words(instance, Daemon::Switchd),
            Daemon::Switchd,
            config.program(Daemon::Switchd),
        )?;
        // of each attempt: what the first has used up is not missing to the second
        let end = Instant::now() + PATIENCE + PATIENCE;
        let ready = wait_ready(instance, Daemon::Switchd, &mut child, from, end);
        if ready.is_err() {
            // one that is late still runs, and two can't
            end_daemon(instance, Daemon::Switchd, child.id())?;
            child.kill()?;
            child.wait()?;
        }
        ready
    };
    if let Err(e) = again(&config) {
        again(&before).with_context(|| format!("{e:#}; and the switch as it was did not start"))?;
        return Err(e);
    }
    save(instance, &config)?;
    let done = match parts {
        Some(parts) => format!(
            "{port} is split into {parts}: {port}s0 to {port}s{}",
            parts - 1
        ),
        None => format!("{port} is one port again"),
    };
    report(instance, &[done], out)
}

/// Prints what was done.
pub fn report(instance: &Instance, actions: &[String], out: Out) -> Result<Answer> {
    let value = json!({"instance": instance.name(), "actions": actions});
    out.print(&value, || {
        actions
            .iter()
            .map(|a| format!("{}: {a}\n", instance.name()))
            .collect()
    })?;
    Ok(Answer::Yes)
}

/// Whether a process ended within a time.
fn ended(process: &OwnedFd, within: Duration) -> Result<bool> {
    let end = Instant::now() + within;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let mut fds = [PollFd::new(process, PollFlags::IN)];
        match poll(&mut fds, Some(&Timespec::try_from(left)?)) {
            Ok(0) if left.is_zero() => return Ok(false),
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(true),
            Err(e) => return Err(e).context("wait for a process"),
        }
    }
}

/// `tandem down`: switchd first, so that nothing drives a chip that is going away.
pub fn down(instance: &Instance, out: Out) -> Result<Answer> {
    let mut actions = Vec::new();
    for daemon in [Daemon::Swcfgd, Daemon::Switchd, Daemon::Asicd] {
        let Some(pid) = instance.running(daemon)? else {
            // most switches have no console
            if daemon == Daemon::Swcfgd {
                continue;
            }
            actions.push(format!("{} does not run", expected(instance, daemon)));
            continue;
        };
        if daemon == Daemon::Asicd && own_asicd(instance)?.is_some() {
            actions.push(format!(
                "asicd (pid {pid}) is ofagentd's and runs on: tandem --name {} openflow down",
                instance.name()
            ));
            continue;
        }
        actions.push(end_daemon(instance, daemon, pid)?);
    }
    report(instance, &actions, out)
}

/// The program that is this daemon of an instance that was started by `tandem up`.
fn expected(instance: &Instance, daemon: Daemon) -> &'static str {
    let config = Config::own(instance);
    config.map_or(daemon.name(), |config| config.program(daemon))
}

/// The program that a process is: with engine chip swcfgd stands in switchd's place.
fn called(daemon: Daemon, pid: u32) -> &'static str {
    let name = fs::read_to_string(format!("/proc/{pid}/comm"));
    match (daemon, name.as_deref().map(str::trim)) {
        (Daemon::Switchd, Ok("swcfgd")) => "swcfgd",
        _ => daemon.name(),
    }
}

/// Ends a daemon, by force if it doesn't listen; what was done. It is held by a descriptor, as its number may be another
/// process's by the time a signal is sent.
pub fn end_daemon(instance: &Instance, daemon: Daemon, pid: u32) -> Result<String> {
    let target = i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .context("a pid file without a pid")?;
    let name = called(daemon, pid);
    let over = || Ok(format!("{name} stopped (pid {pid})"));
    let process = match pidfd_open(target, PidfdFlags::empty()) {
        Err(Errno::SRCH) => return over(),
        opened => opened.with_context(|| format!("find {name} (pid {pid})"))?,
    };
    if instance.running(daemon)? != Some(pid) {
        return over();
    }
    for signal in [Signal::TERM, Signal::KILL] {
        match pidfd_send_signal(&process, signal) {
            Err(Errno::SRCH) => return over(),
            sent => sent.with_context(|| format!("end {name} (pid {pid})"))?,
        }
        match (ended(&process, PATIENCE)?, signal) {
            (true, Signal::TERM) => return over(),
            (true, _) => {
                return Ok(format!(
                    "{name} killed (pid {pid}): it did not end by itself within {} s",
                    PATIENCE.as_secs()
                ));
            }
            (false, _) => {}
        }
    }
    bail!("{name} (pid {pid}) does not end, not even by SIGKILL")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::instance;

    #[test]
    fn a_daemon_has_the_directory_of_who_starts_it() {
        let i = Instance::in_dir(Path::new("/x/run"), "t").unwrap();
        for daemon in [Daemon::Asicd, Daemon::Switchd] {
            let c = command(&i, &[], daemon.name());
            let run = c.get_envs().find(|(k, _)| *k == "TANDEM_RUN").unwrap();
            assert_eq!(run.1, Some("/x/run".as_ref()));
            assert_eq!(c.get_current_dir(), Some(Path::new("/")));
        }
    }

    #[test]
    fn a_process_that_is_not_the_daemon_is_left_alone() {
        let (dir, i) = instance("others");
        // the daemon is this process; the number is one that it had before
        let _claim = i.claim(Daemon::Asicd).unwrap();
        let mut other = Command::new("sleep").arg("60").spawn().unwrap();
        end_daemon(&i, Daemon::Asicd, other.id()).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        assert!(other.try_wait().unwrap().is_none(), "it was ended");
        other.kill().unwrap();
        other.wait().unwrap();
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn last_words_are_the_new_ones() {
        let (dir, i) = instance("words");
        let log = i.log_file(Daemon::Asicd);
        fs::write(&log, "old\n").unwrap();
        assert_eq!(last_words(&log, 4), "it said nothing");
        fs::write(&log, "old\nnew: reason\n\n").unwrap();
        assert_eq!(last_words(&log, 4), "new: reason");
        let clap = "error: invalid value 'x' for '--policy <POLICY>'\n  [possible values: trap, fail]\n\nFor more \
                    information, try '--help'.\n";
        fs::write(&log, format!("old\n{clap}")).unwrap();
        assert_eq!(
            last_words(&log, 4),
            "invalid value 'x' for '--policy <POLICY>' [possible values: trap, fail]"
        );
        let aborted = "INFO started\nmemory allocation of 4096 bytes failed\nmemory allocation of 1 bytes failed\nskipping backtrace printing to avoid \
                       potential recursion\n";
        fs::write(&log, aborted).unwrap();
        assert_eq!(
            last_words(&log, 0),
            "memory allocation of 4096 bytes failed"
        );
        fs::remove_dir_all(dir).unwrap();
    }
}
