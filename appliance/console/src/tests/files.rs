// SPDX-License-Identifier: Apache-2.0
//! What is kept, read again, replaced; files with bad lines, disks that fail.

use super::lines::EXAMPLE;
use super::{Bench, port};
use crate::{OnBad, STARTUP, lock};

#[test]
fn kept_and_read_again() {
    let mut bench = Bench::new();
    bench.set(EXAMPLE);
    assert_eq!(
        bench.say("show startup-config"),
        "startup-config is not present\n"
    );
    assert_eq!(
        bench.say("write memory"),
        "Building configuration...\n[OK]\n"
    );
    let kept = bench.files.0.lock().unwrap()[STARTUP].clone();
    assert_eq!(
        bench.say("show archive config differences"),
        "!Contextual Config Diffs:\n!No changes were found\n"
    );
    bench.set(&[
        "int gi1/0/1",
        "description new",
        "no switchport mode",
        "no interface vlan 3",
        "hostname a",
    ]);
    assert_eq!(
        bench.say("show archive config differences"),
        "!Contextual Config Diffs:\n+hostname a\ninterface GigabitEthernet1/0/1\n +description new\n \
         -switchport mode trunk\n-hostname Switch\n-interface Vlan3\n -ip address 192.168.3.254 255.255.255.0\n"
    );
    // as a boot does
    let fresh = Bench::new();
    fresh.files.0.lock().unwrap().insert(STARTUP.into(), kept);
    assert_eq!(
        lock(&fresh.switch).boot(OnBad::Refuse),
        Vec::<String>::new()
    );
    let mut example = Bench::new();
    example.set(EXAMPLE);
    assert_eq!(fresh.config(), example.config());
    assert_eq!(fresh.fake.lock().unwrap().applied.len(), 1, "in one step");
    // and back to it
    bench.say("configure replace startup-config");
    assert_eq!(
        bench.session.prompt(),
        "Enter Y if you are sure you want to proceed. ? [no]: "
    );
    assert!(bench.say("y").ends_with("Rollback Done\n"));
    assert_eq!(bench.config(), example.config());
    bench.say("write erase");
    assert_eq!(bench.say(""), "[OK]\nErase of nvram: complete\n");
    assert!(bench.files.0.lock().unwrap().is_empty());
}

/// A disk that is full.
struct Full;

impl crate::Store for Full {
    fn read(&self, _: &str) -> std::io::Result<Option<String>> {
        Err(std::io::Error::other("no disk"))
    }

    fn write(&mut self, _: &str, _: &str) -> std::io::Result<()> {
        Err(std::io::Error::other("no room"))
    }

    fn list(&self) -> std::io::Result<crate::store::Listed> {
        Err(std::io::Error::other("no disk"))
    }

    fn erase(&mut self, _: &str) -> std::io::Result<()> {
        Err(std::io::Error::other("no disk"))
    }
}

#[test]
fn a_disk_that_fails() {
    let mut bench = Bench::new();
    lock(&bench.switch).store = crate::Shelf::new(Box::new(Full));
    assert_eq!(
        lock(&bench.switch).boot(OnBad::Skip),
        ["% startup-config: no disk"]
    );
    assert_eq!(
        bench.say("write"),
        "Building configuration...\n% startup-config is not written: no room\n"
    );
    assert_eq!(
        bench.say("show startup-config"),
        "% startup-config: no disk\n"
    );
    assert_eq!(
        bench.say("show archive config differences"),
        "% startup-config: no disk\n"
    );
    assert_eq!(
        bench.say("configure replace startup-config force"),
        "% startup-config: no disk\n"
    );
    bench.say("erase startup-config");
    assert_eq!(bench.say("y"), "% startup-config: no disk\n");
}

#[test]
fn copies() {
    let mut bench = Bench::new();
    bench.set(&["vlan 10"]);
    bench.say("copy running-config startup-config");
    assert_eq!(
        bench.session.prompt(),
        "Destination filename [startup-config]? "
    );
    assert_eq!(bench.say(""), "Building configuration...\n[OK]\n");
    bench.say("copy run flash:a.cfg");
    assert_eq!(bench.say(""), "[OK]\n");
    bench.say("copy flash:a.cfg startup-config");
    assert!(bench.say("").ends_with("bytes copied\n"));
    bench
        .files
        .0
        .lock()
        .unwrap()
        .insert("b.cfg".into(), "vlan 20\nnonsense\nvlan 30\n".into());
    bench.say("copy b.cfg running-config");
    assert_eq!(
        bench.say(""),
        "% line 2: nonsense: Invalid input at \"nonsense\"\n25 bytes copied\n"
    );
    assert_eq!(
        bench.config().vlans.keys().copied().collect::<Vec<_>>(),
        [10, 20, 30]
    );
    bench.say("copy nothing running-config");
    assert_eq!(
        bench.say(""),
        "%Error opening nothing (No such file or directory)\n"
    );
    bench.say("copy run nothing");
    bench.session.leave();
    assert_eq!(bench.session.prompt(), "Switch#");
    assert!(!bench.files.0.lock().unwrap().contains_key("nothing"));
}

const BROKEN: &str = "hostname box
interface GigabitEthernet1/0/99
 switchport access vlan 5
 shutdown
vlan 4095
 name ghost
vlan 7
 name seven
router eigrp 1
interface GigabitEthernet1/0/1
 switchport access vlan 7
 frobnicate
 description \u{1}odd
end
vlan 99
";

#[test]
fn a_broken_startup_config() {
    let boot = |on_bad, refuse| {
        let bench = Bench::new();
        bench.fake.lock().unwrap().refuse = refuse;
        bench
            .files
            .0
            .lock()
            .unwrap()
            .insert(STARTUP.into(), BROKEN.into());
        let said = lock(&bench.switch).boot(on_bad);
        (bench, said)
    };
    let (bench, said) = boot(OnBad::Skip, None);
    let numbers: Vec<&str> = said.iter().filter_map(|l| l.split(':').next()).collect();
    assert_eq!(
        numbers,
        [
            "% line 2",
            "% line 3",
            "% line 4",
            "% line 5",
            "% line 6",
            "% line 9",
            "% line 12"
        ],
        "{said:?}"
    );
    let config = bench.config();
    assert_eq!(config.hostname.as_deref(), Some("box"));
    assert_eq!(config.vlans.keys().copied().collect::<Vec<_>>(), [7]);
    assert_eq!(config.interface(&port(1)).switchport.unwrap().access, 7);
    assert_eq!(
        config.interfaces.len(),
        1,
        "what is below a bad header goes nowhere"
    );
    let (bench, said) = boot(OnBad::Refuse, None);
    assert_eq!(said.len(), 8);
    assert_eq!(bench.config(), Default::default());
    // what the engine refuses is named too, and the rest is there
    let (bench, said) = boot(OnBad::Skip, Some((7, "no room")));
    assert!(
        said.contains(&"% line 7: vlan 7: no room".to_string()),
        "{said:?}"
    );
    assert_eq!(bench.config().hostname.as_deref(), Some("box"));
    assert!(bench.config().vlans.is_empty());
}

/// A text without spaces in front of its lines is read as well, and what is below a bad first line goes nowhere.
#[test]
fn a_broken_file_without_indents() {
    let text = "interface gi1/0/1\nshutdown\ninterface gi1/0/99\ndescription x\nno shutdown\nvlan 5\nname a\n\
                vlan 4095\nname b\nfrobnicate\ninterface gi1/0/2\nfrobnicate\nmtu 9000\n";
    let bench = Bench::new();
    let ports = lock(&bench.switch).ports();
    let (config, bad) = crate::load::read(&Default::default(), text, &ports, false);
    let numbers: Vec<usize> = bad.iter().map(|b| b.number).collect();
    assert_eq!(numbers, [3, 4, 5, 8, 9, 10, 12], "{bad:?}");
    let first = config.interface(&port(1));
    assert!(first.shutdown && first.description.is_none());
    assert_eq!(config.vlans[&5].name.as_deref(), Some("a"));
    assert_eq!(config.interface(&port(2)).mtu, Some(9000));
}

#[test]
fn replace_is_whole_or_not_at_all() {
    let mut bench = Bench::new();
    bench.set(&["vlan 10"]);
    let before = bench.config();
    let put = |bench: &Bench, text: &str| {
        bench
            .files
            .0
            .lock()
            .unwrap()
            .insert("x".into(), text.into())
    };
    put(&bench, "vlan 20\nbad\n");
    assert_eq!(
        bench.say("configure replace flash:x force"),
        "% line 2: bad: Invalid input at \"bad\"\n% x has bad lines: nothing is replaced\n"
    );
    assert_eq!(bench.config(), before);
    put(&bench, "vlan 20\nvlan 7\n");
    bench.fake.lock().unwrap().refuse = Some((7, "no"));
    assert_eq!(
        bench.say("configure replace x force"),
        "% no\n% Nothing is replaced\n"
    );
    assert_eq!(bench.config(), before);
    put(&bench, "vlan 20\n");
    assert_eq!(
        bench.say("configure replace x force"),
        "+vlan 20\n-vlan 10\nTotal number of passes: 1\nRollback Done\n"
    );
    assert_eq!(
        bench.config().vlans.keys().copied().collect::<Vec<_>>(),
        [20]
    );
}

/// Many VLANs, with names, and an interface for each, are read in one go.
#[test]
fn a_thousand_vlans() {
    let mut text = String::from("ip routing\n");
    for id in 2..=1000u16 {
        text += &format!("vlan {id}\n name net-{id}\n");
    }
    for id in 2..=1000u16 {
        text += &format!(
            "interface Vlan{id}\n ip address 10.{}.{}.1 255.255.255.0\n",
            id / 256,
            id % 256
        );
    }
    let bench = Bench::new();
    bench.files.0.lock().unwrap().insert(STARTUP.into(), text);
    assert_eq!(lock(&bench.switch).boot(OnBad::Skip), Vec::<String>::new());
    let config = bench.config();
    assert_eq!((config.vlans.len(), config.interfaces.len()), (999, 999));
    assert_eq!(bench.fake.lock().unwrap().applied.len(), 1);
}

#[test]
fn files_as_they_are_listed_shown_and_removed() {
    let mut bench = Bench::new();
    assert!(bench.say("dir").contains("No files in directory"));
    bench
        .files
        .0
        .lock()
        .unwrap()
        .insert("a".into(), "vlan 5\n".into());
    let row = "    1  -rw-             7  Feb 29 2000 12:34:56 +00:00  a\n";
    let all = format!("Directory of flash:/\n\n{row}\n1000 bytes total (400 bytes free)\n");
    assert_eq!(bench.say("dir"), all);
    assert_eq!(bench.say("dir flash:"), all);
    assert!(
        bench
            .say("dir flash:/a")
            .starts_with("Directory of flash:/a\n")
    );
    let missing = "%Error opening flash:/b (No such file or directory)\n";
    for line in ["dir flash:b", "more b", "verify /md5 b", "delete /force b"] {
        let said = bench.session.line(line);
        assert_eq!(
            (said.text.as_str(), said.refused),
            (missing, true),
            "{line}"
        );
    }
    assert_eq!(
        bench.say("show flash:"),
        "-#- --length-- ---------date/time--------- path\n\
         1            7 Feb 29 2000 12:34:56 +00:00 a\n\n400 bytes available (600 bytes used)\n"
    );
    assert_eq!(bench.say("more flash:a"), "vlan 5\n");
    // as md5sum says
    assert_eq!(
        bench.say("verify /md5 flash:a"),
        ".Done!\nverify /md5 (flash:a) = 06919c1229e210e5d2650afb6ca30a89\n"
    );
    bench.say("delete flash:a");
    assert_eq!(bench.session.prompt(), "Delete filename [a]? ");
    bench.say("");
    assert_eq!(bench.session.prompt(), "Delete flash:/a? [confirm]");
    bench.say("n");
    assert_eq!(bench.say("more a"), "vlan 5\n");
    for answer in ["delete a", "a", ""] {
        assert_eq!(bench.say(answer), "");
    }
    assert!(bench.files.0.lock().unwrap().is_empty());
    // who may only look sees no secrets
    bench.session = crate::Session::new(bench.switch.clone(), crate::Door::vty(1));
    assert!(bench.say("more a").contains("Invalid input"));
    lock(&bench.switch).store = crate::Shelf::new(Box::new(Full));
    bench.session = crate::Session::new(bench.switch.clone(), crate::Door::cli());
    assert_eq!(bench.say("dir"), "% flash: no disk\n");
}
