//! tandem-ivshmem-server: see the library.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use tandem_carrier::EventFd;
use tandem_ivshmem_server::{Server, ServerError};

/// Owns the memory between a VM (QEMU's ivshmem-doorbell) and asicd, and their doorbells.
#[derive(Debug, Parser)]
#[command(name = "tandem-ivshmem-server", version)]
struct Args {
    /// Where QEMU's chardev and asicd connect.
    #[arg(long)]
    socket: PathBuf,
    /// Bytes of memory, a power of two; K, M and G are understood. asicd's default region needs 32M.
    #[arg(long, default_value = "32M", value_parser = bytes)]
    size: usize,
    /// Doorbells of each peer; QEMU's vectors= must be the same. asicd's default region needs 5.
    #[arg(long, default_value_t = 8)]
    vectors: usize,
}

fn bytes(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(['K', 'M', 'G']);
    let shift = match text.strip_prefix(digits) {
        Some("") => 0,
        Some("K") => 10,
        Some("M") => 20,
        Some("G") => 30,
        _ => return Err(format!("{text} is no size: write 32M")),
    };
    let n: usize = digits
        .parse()
        .map_err(|_| format!("{text} is no size: write 32M"))?;
    n.checked_mul(1 << shift)
        .ok_or_else(|| format!("{text} is too large"))
}

fn run(args: &Args) -> Result<(), ServerError> {
    let mut server = Server::new(&args.socket, args.size, args.vectors)?;
    println!(
        "{}: {} bytes, {} vectors",
        args.socket.display(),
        server.size(),
        args.vectors
    );
    let never = EventFd::new().map_err(|source| ServerError::Io {
        what: "eventfd",
        source,
    })?;
    server.serve(&never)
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("tandem-ivshmem-server: {e}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn sizes() {
        assert_eq!(super::bytes("32M"), Ok(32 << 20));
        assert_eq!(super::bytes("4096"), Ok(4096));
        for bad in ["", "M", "1T", "1KM", "99999999999G", "-1"] {
            assert!(super::bytes(bad).is_err(), "{bad}");
        }
    }
}
