# SPDX-License-Identifier: Apache-2.0
"""Small breaks of production code, one at a time, to see which test notices (docs/mutants.md).

    mutants.py check                  each mutant's text is in its file exactly once, names are unique; for `./run lint`
    mutants.py run [OPTION...] [ID...]
                                      all mutants, or those whose name begins with an ID; exit 1 if one survives without
                                      a reason, or fewer than 95 % are caught. Of the driver those parts that
                                      kernel/tests builds for user space
    mutants.py table                  what out/test/mutants.json says, for docs/mutants.md

The sources stay as they are: a copy in out/mutants/tree gets, for each mutant, a choice at run time between the text
and its replacement, and is built once. TANDEM_MUTANT=N chooses mutant N.
"""

import argparse
import collections
import concurrent.futures
import datetime
import glob
import hashlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LISTS = "tests/mutants"
SKIP = {".git", "target", "out", "__pycache__", ".pytest_cache"}
KINDS = {"comparison", "condition", "off by one", "lost flag", "lost refresh", "lost notification", "lost undo",
         "wrong field", "wrong value", "wrong order", "limit", "leak", "timing"}
FIELDS = {"id", "file", "text", "with", "kind", "why"}
WANTED = 95             # percent caught
LEAST = 150             # mutants
LONG, TIMES = 60, 10    # a run that takes so many seconds, and so many times as long as without a mutant, hangs
MEMORY = 8 << 30
PLAYS = 40
# Their tests/ start daemons, as root, and wait for them: a break that only they notice has no unit test
DAEMONS = ("tandem-asicd", "tandem-switchd")
IDLE = ("tandem-bench", "tandem-abi-gen")
# The driver's tests: a folder of kernel/tests, whose `run --build` makes these programs, and what they are told
DRIVER = (
    ("core", "test_core", ["1"]),
    ("cover", "test_cover", ["../../../switch/cover/vectors/*.json"]),
    ("ring", "test_ring", ["1"]),
    ("resource", "replay", ["exact.trace"]),
    ("resource", "test_rm", ["1"]),
    ("resource", "fuzz", ["300"]),
    ("resource", "test_profiles", ["--quick", "tiny", "spectrum-sn2700"]),
)
# At `test-all` these ask for many times as many cases: enough for a test, too much for each of the mutants
LONGER = ("TANDEM_LONG", "PROPTEST_CASES", "FUZZ_FRAMES", "FUZZ_ITERATIONS", "COVER_CASES")
# The same cases in each run, or what a mutant survives would hang on luck
SAME = {"PROPTEST_RNG_SEED": "20260101", "PROPTEST_MAX_SHRINK_ITERS": "0"}
NOTHING = {"TANDEM_MUTANT": "0"}


class Broken(Exception):
    """What is wrong with the lists, the build or the clean run, in one line or several."""


# ------------------------------------------------------------------------------------------------ the lists

class Mutant:
    """One break: where it is, the text, the piece of it (between « and ») that is replaced, and by what."""

    def __init__(self, raw, folder, source):
        unknown = set(raw) - FIELDS - {"survives"}
        missing = FIELDS - set(raw)
        self.id = raw.get("id", "?")
        if unknown or missing:
            raise Broken(f"{source}: {self.id}: " + ", ".join([f"no `{x}`" for x in sorted(missing)] +
                                                             [f"what is `{x}`?" for x in sorted(unknown)]))
        self.file = os.path.join(folder, raw["file"])
        self.kind, self.why, self.survives = raw["kind"], raw["why"], raw.get("survives")
        self.text, self.instead = raw["text"].strip(), raw["with"].strip()
        self.source, self.number, self.line = source, 0, 0
        if self.kind not in KINDS:
            raise Broken(f"{source}: {self.id}: the kind is one of {', '.join(sorted(KINDS))}")
        if self.text.count("«") != self.text.count("»") or self.text.count("«") > 1:
            raise Broken(f"{source}: {self.id}: one piece between « and », or none for all of the text")

    def place(self, body):
        """(start, end) of the piece in its file. Blanks and line breaks of the text stand for any others."""
        before, piece, after = "", self.text, ""
        if "«" in self.text:
            before, rest = self.text.split("«")
            piece, after = rest.split("»")
        found = list(re.finditer(pattern(before) + "(?P<piece>" + pattern(piece) + ")" + pattern(after), body))
        if len(found) != 1:
            raise Broken(f"{self.source}: {self.id}: its text is {len(found)} times in {self.file}, not once")
        start = found[0].start("piece")
        self.line = body.count("\n", 0, start) + 1
        if re.match(r"\s*(pub(\(\w+\))? )?(const|static) (?!fn)", body[body.rfind("\n", 0, start) + 1:start]):
            raise Broken(f"{self.source}: {self.id}: a constant is computed by the compiler, which makes no choice")
        if re.match(r"(if|for|while) ", piece) and not piece.endswith(("}", ";")):
            raise Broken(f"{self.source}: {self.id}: half a statement, with which nothing builds")
        if re.match(r"\.\w|[=!<>]=", piece):
            raise Broken(f"{self.source}: {self.id}: half an expression, with which nothing builds")
        return found[0].span("piece")

    def key(self):
        """Changes with anything that decides what the mutant is."""
        return hashlib.sha256("\0".join([self.file, self.text, self.instead]).encode()).hexdigest()[:16]


def pattern(text):
    return r"\s+".join(re.escape(word) for word in re.split(r"\s+", text))


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def load():
    """All mutants in the order of the lists; every mistake in them at once."""
    mutants, wrong, bodies = [], [], {}
    for name in sorted(os.listdir(os.path.join(TOP, LISTS))):
        if not name.endswith(".toml"):
            continue
        source = f"{LISTS}/{name}"
        try:
            parsed = tomllib.loads(read(os.path.join(TOP, source)))
        except tomllib.TOMLDecodeError as e:
            wrong.append(f"{source}: {e}")
            continue
        for raw in parsed.get("mutant", []):
            try:
                m = Mutant(raw, parsed.get("folder", ""), source)
                path = os.path.join(TOP, m.file)
                if not os.path.exists(path):
                    raise Broken(f"{source}: {m.id}: there is no {m.file}")
                m.place(bodies.setdefault(m.file, read(path)))
                mutants.append(m)
            except Broken as e:
                wrong.append(str(e))
    for i, many in collections.Counter(m.id for m in mutants).items():
        if many > 1:
            wrong.append(f"{many} mutants are called {i}")
    if wrong:
        raise Broken("\n".join(wrong))
    for number, m in enumerate(mutants, 1):
        m.number = number
    for name, body in bodies.items():
        mutated(body, [m for m in mutants if m.file == name])
    return mutants


# ------------------------------------------------------------------------------------------------ the copy

RUST = """
#[doc(hidden)]
#[allow(missing_docs)]
pub mod mutant {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    static STATE: OnceLock<(u32, Option<std::fs::File>)> = OnceLock::new();
    static SEEN: [AtomicBool; %d] = [const { AtomicBool::new(false) }; %d];
    fn state() -> (u32, Option<std::fs::File>) {
        let chosen = std::env::var("TANDEM_MUTANT").ok();
        let log = std::env::var_os("TANDEM_MUTANTS_SEEN");
        let log = log.and_then(|p| std::fs::OpenOptions::new().append(true).create(true).open(p).ok());
        (chosen.and_then(|c| c.parse().ok()).unwrap_or(0), log)
    }
    pub fn on(n: u32) -> bool {
        let (chosen, log) = STATE.get_or_init(state);
        if let Some(mut log) = log.as_ref()
            && SEEN.get(n as usize).is_some_and(|s| !s.swap(true, Relaxed))
        {
            let _ = std::io::Write::write_all(&mut log, format!("{n}\\n").as_bytes());
        }
        *chosen == n
    }
}
"""


# The same for a file of the driver, built for user space
DRIVER_C = """
extern char *getenv(const char *name);
extern int atoi(const char *text);
extern int open(const char *path, int flags, ...);
extern int dprintf(int file, const char *format, ...);
static int mutant_on(int n)
{
    static int chosen = -1, told = -1;
    static unsigned char seen[%d];
    const char *text;

    if (chosen < 0) {
        text = getenv("TANDEM_MUTANTS_SEEN");
        told = text ? open(text, 02101 /* write, create, append */, 0600) : -1;
        text = getenv("TANDEM_MUTANT");
        chosen = text ? atoi(text) : 0;
    }
    if (told >= 0 && !seen[n]) {
        seen[n] = 1;
        dprintf(told, "%%d\\n", n);
    }
    return n == chosen;
}
#line 1
"""


def is_c(path):
    return path.endswith(".c")


def chosen(mutants, text):
    """`text`, or what one of its mutants has instead."""
    if is_c(mutants[0].file):
        if text.endswith(";") or re.match(r"(if|for|while) .*}$", text, re.S):
            arms = "".join(f"if (mutant_on({m.number})) {{ {m.instead} }} else " for m in mutants)
            return f"{{ {arms}{{ {text} }} }}"
        arms = "".join(f"mutant_on({m.number}) ? ({m.instead}) : " for m in mutants)
        return f"({arms}({text}))"
    arms = "".join(f"if crate::mutant::on({m.number}) {{ {m.instead} }} else " for m in mutants)
    if text.endswith(";") or re.match(r"(if|for|while) .*}$", text, re.S):
        return f"{arms}{{ {text} }}"
    return f"({arms}{{ {text} }})"


def mutated(body, mutants):
    """The file with a choice at each mutant's place."""
    places = collections.defaultdict(list)
    for m in mutants:
        places[m.place(body)].append(m)
    last = len(body)
    for (start, end), here in sorted(places.items(), reverse=True):
        if end > last:
            raise Broken(f"{here[0].source}: {here[0].id} overlaps another mutant of {here[0].file}")
        body = body[:start] + chosen(here, body[start:end]) + body[end:]
        last = start
    return body


def crate_of(path):
    """The folder of the crate that a file belongs to."""
    folder = os.path.dirname(path)
    while folder and not os.path.exists(os.path.join(TOP, folder, "Cargo.toml")):
        folder = os.path.dirname(folder)
    return folder


def files():
    for folder, folders, names in os.walk(TOP):
        folders[:] = sorted(f for f in folders if f not in SKIP)
        for name in sorted(names):
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield os.path.relpath(path, TOP)


def copy(mutants, tree):
    """Writes the copy, only files that changed, so that cargo builds no more than it must. Its sources' hash."""
    by_file = collections.defaultdict(list)
    for m in mutants:
        by_file[m.file].append(m)
    room = len(mutants) + 1
    roots = {os.path.join(crate_of(f), "src/lib.rs") for f in by_file if not is_c(f)}
    sum_ = hashlib.sha256()
    there = set()
    for path in files():
        with open(os.path.join(TOP, path), "rb") as f:
            body = f.read()
        if not path.startswith((LISTS, "docs/")):
            sum_.update(path.encode() + b"\0" + hashlib.sha256(body).digest())
        if path in by_file:
            body = mutated(body.decode(), by_file[path])
            body = ((DRIVER_C % room if is_c(path) else "") + body).encode()
        if path in roots:
            body = b"#![allow(warnings)] " + body + (RUST % (room, room)).encode()
        there.add(path)
        target = os.path.join(tree, path)
        try:
            with open(target, "rb") as f:
                if f.read() == body:
                    continue
        except OSError:
            os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as f:
            f.write(body)
        os.chmod(target, os.stat(os.path.join(TOP, path)).st_mode)
    for folder, folders, names in os.walk(tree):
        folders[:] = [f for f in folders if f not in SKIP]
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), tree)
            if path not in there and path != "Cargo.lock":
                os.remove(os.path.join(tree, path))
    return sum_.hexdigest()[:16]


# ------------------------------------------------------------------------------------------------ the tests

class Tests:
    """One program that tests, or a module of one: how it is called, how long it takes and which mutants it comes by
    without one."""

    def __init__(self, name, command, cwd, env=None, libtest=False, last=False, limit=True, only=()):
        self.name, self.command, self.cwd, self.env = name, command, cwd, env or {}
        self.libtest, self.last, self.limit = libtest, last, limit
        self.only = only
        self.seconds, self.seen = 0.0, set()

    def stamp(self):
        """Changes with the program: what a clean run said of another one does not hold."""
        st = os.stat(self.command[0])
        return [st.st_mtime_ns, st.st_size]

    def without(self, skipped):
        """The arguments for all its tests but these."""
        if self.only:
            return ["--exact", *(n for n in self.only if n not in skipped)]
        return ["--exact", *(word for n in skipped for word in ("--skip", n))] if skipped else []


def modules(program):
    """{module: its tests} of a program whose main.rs has a module for each file; a test at its top is in `main`."""
    said = subprocess.run([program, "--list", "--format=terse"], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = collections.defaultdict(list)
    for name in re.findall(r"^(\S+): test$", said, re.M):
        found[name.split("::")[0] if "::" in name else "main"].append(name)
    return found


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.nice(5)


def limit_less():
    """A sanitizer takes terabytes of addresses: it limits the memory itself."""
    os.nice(5)


def end(process):
    """Ends a program and whatever it started."""
    for sig in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sig)
        except ProcessLookupError:
            break
        try:
            process.wait(3)
        except subprocess.TimeoutExpired:
            pass
    process.wait()


def play(tests, env, limit, arguments=()):
    """(how it failed or None, seconds, the end of what it said). Ends a program at its first failed test."""
    began = time.monotonic()
    plain = {k: v for k, v in os.environ.items() if k not in LONGER}
    p = subprocess.Popen([*tests.command, *arguments], cwd=tests.cwd, env={**plain, **SAME, **tests.env, **env},
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         start_new_session=True, preexec_fn=limit_memory if tests.limit else limit_less)
    late = threading.Event()

    def ring():
        late.set()
        end(p)

    alarm = threading.Timer(limit, ring)
    alarm.start()
    said, failed = collections.deque(maxlen=60), None
    try:
        for raw in p.stdout:
            line = raw.decode(errors="replace").rstrip()
            said.append(line)
            m = re.match(r"test (\S+)( - should panic)? \.\.\. FAILED", line)
            if m and failed is None:
                failed = m.group(1)
                end(p)
    finally:
        alarm.cancel()
    code = p.wait()
    seconds = time.monotonic() - began
    if late.is_set():
        failed = f"hangs (> {limit:.0f} s)"
    elif failed is None and code != 0:
        failed = complaint(said) or (f"signal {-code}" if code < 0 else f"code {code}")
    return failed, seconds, list(said)


def complaint(said):
    """What the twin says of why it failed, without what differs from run to run."""
    for line in said:
        if re.search(r"^FAILED|: FAILED|[Aa]ssert|expected|panicked at|\.c:\d+: |ERROR: .*Sanitizer", line):
            return re.sub(r"0x[0-9a-f]+|/\S*/", "", line)[:100]
    return None


def cargo(arguments, tree, **more):
    command = [os.environ.get("CARGO", "cargo"), *arguments]
    return subprocess.run(command, cwd=tree, stdout=subprocess.PIPE, text=True, **more)


def packages(tree):
    """{name: (folder, names of all it is built from, its tests/*.rs)} of the workspace."""
    found = cargo(["metadata", "--format-version=1", "--no-deps", "--locked"], tree)
    if found.returncode:
        raise Broken("cargo metadata failed")
    all_ = {p["name"]: p for p in json.loads(found.stdout)["packages"]}
    direct = {n: {d["name"] for d in p["dependencies"] if d["name"] in all_} for n, p in all_.items()}

    def closure(name, seen):
        for d in direct[name] - seen:
            closure(d, seen | {d})
            seen |= {d} | closure(d, {d})
        return seen

    return {n: (os.path.relpath(os.path.dirname(p["manifest_path"]), os.path.realpath(tree)), closure(n, {n}),
                [t["name"] for t in p["targets"] if "test" in t["kind"]])
            for n, p in all_.items()}


def build(mutants, tree, work):
    """Builds the tests of every crate that is mutated or uses one that is, and of the driver; [Tests]."""
    driver = any(is_c(m.file) for m in mutants)
    crates = {crate_of(m.file) for m in mutants if not is_c(m.file)}
    return (build_crates(crates, tree) if crates else []) + (build_driver(tree, work) if driver else [])


def build_driver(tree, work):
    """The programs of kernel/tests, each folder's by its own `run`."""
    print("   building the driver's tests", flush=True)
    out, made = [], set()
    compiler = os.path.join(work, "cc")
    with open(compiler, "w", encoding="utf-8") as f:
        # what a mutant leaves unused, or compares in vain, is no mistake
        f.write(f'#!/bin/sh\nexec {os.environ.get("CC", "cc")} "$@" -w\n')
    os.chmod(compiler, 0o755)
    for folder, program, arguments in DRIVER:
        tests, programs = os.path.join(tree, "kernel/tests", folder), os.path.join(work, "driver", folder)
        if folder not in made:
            os.makedirs(programs, exist_ok=True)
            built = subprocess.run(["./run", "--build", programs], cwd=tests, env={**os.environ, "CC": compiler})
            if built.returncode:
                raise Broken(f"the mutants of the driver do not build: kernel/tests/{folder}")
            made.add(folder)
        told = [path for a in arguments for path in (sorted(glob.glob(os.path.join(tests, a))) if "*" in a else [a])]
        out.append(Tests(f"driver/{folder}/{program}", [os.path.join(programs, program), *told], tests,
                         {"ASAN_OPTIONS": f"hard_rss_limit_mb={MEMORY >> 22}"}, limit=False))
    return out


def build_crates(crates, tree):
    known = packages(tree)
    names = {n for n, p in known.items() if p[0] in crates}
    wanted = sorted(n for n, (_, uses, _) in known.items()
                    if uses & names and n not in IDLE and (n in names or n not in DAEMONS))
    tests = sorted({t for n in wanted if n not in DAEMONS for t in known[n][2]})
    print(f"   building {len(wanted)} crates", flush=True)
    env = {**os.environ, "CARGO_TARGET_DIR": os.environ.get("CARGO_TARGET_DIR", os.path.join(TOP, "target")),
           "CARGO_INCREMENTAL": "1"}
    built = cargo(["test", "--no-run", "--locked", "--message-format=json-render-diagnostics", "--lib", "--bins",
                   *(f"--test={t}" for t in tests), *(f"-p{n}" for n in wanted)], tree, env=env)
    if built.returncode:
        raise Broken("the mutants do not build: the compiler's message is above")
    out = []
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message.get("reason") != "compiler-artifact" or not message.get("executable"):
            continue
        target, program = message["target"], message["executable"]
        folder = os.path.dirname(message["manifest_path"])
        package = next(n for n, (f, _, _) in known.items() if os.path.join(os.path.realpath(tree), f) == folder)
        if message["profile"]["test"]:
            if "test" in target["kind"] and package in DAEMONS:
                continue
            name = package.removeprefix("tandem-") + ("" if "lib" in target["kind"] else "/" + target["name"])
            here = {"CARGO_MANIFEST_DIR": folder}
            if target["name"] == "it":
                # file by file: the fast ones first, and none of those that do not come by the mutant
                name = name.removesuffix("/it")
                out += [Tests(f"{name}/{part}", [program], folder, here, libtest=True, only=names)
                        for part, names in modules(program).items()]
            else:
                out.append(Tests(name, [program], folder, here, libtest=True))
        elif package == "tandem-twin":
            recordings = os.path.join(tree, "tests/twin/recordings")
            out.append(Tests("twin play", [program, "play", recordings, "--count", str(PLAYS)], folder, last=True))
    return out


def clean(all_tests, work):
    """Runs everything without a mutant: it must pass, and shows how long it takes and which mutants it comes by."""
    path = os.path.join(work, "clean.json")
    try:
        known = json.loads(read(path))
    except (OSError, ValueError):
        known = {}
    for t in all_tests:
        old, stamp = known.get(t.name), t.stamp()
        if old and old["stamp"] == stamp:
            t.seconds, t.seen = old["seconds"], set(old["seen"])
            continue
        with tempfile.NamedTemporaryFile(dir=work) as seen:
            failed, t.seconds, said = play(t, {**NOTHING, "TANDEM_MUTANTS_SEEN": seen.name}, 3600, t.without([]))
            t.seen = {int(n) for n in read(seen.name).split()}
        print(f"   {t.name:<28} {t.seconds:7.1f} s, comes by {len(t.seen)} mutants", flush=True)
        for line in said:
            if line.startswith("kept fuzz inputs: "):
                print(f"   {line}", flush=True)
        if failed:
            raise Broken("\n".join([*said, f"without a mutant {t.name} fails: {failed}"]))
        known[t.name] = {"stamp": stamp, "seconds": t.seconds, "seen": sorted(t.seen)}
        with open(path, "w", encoding="utf-8") as f:
            json.dump(known, f)


def judge(mutant, all_tests):
    """Runs what comes by the mutant, the fastest first, until one fails because of it; how that went."""
    mine = [t for t in all_tests if mutant.number in t.seen]
    ran, spent, doubts = [], 0.0, []
    env = {"TANDEM_MUTANT": str(mutant.number)}
    for t in sorted(mine, key=lambda t: (t.last, t.seconds)):
        limit = max(LONG, TIMES * t.seconds)
        ran.append(t.name)
        skipped = []
        while True:
            failed, seconds, said = play(t, env, limit, t.without(skipped))
            spent += seconds
            if failed is None:
                break
            # is it this mutant, and not a busy machine or luck? The same passes without it, and fails with it again
            named = t.libtest and not failed.startswith(("hangs", "signal", "code"))
            alone = ["--exact", failed] if named else t.without(skipped)
            if play(t, NOTHING, limit, alone)[0]:
                raise Broken(f"{t.name}: {failed} without a mutant too (or the machine is too busy for its limit)")
            if play(t, env, limit, alone)[0] is not None:
                return {"caught": t.name, "test": failed, "seconds": round(spent, 1), "ran": ran, "said": said[-8:],
                        "doubts": doubts}
            doubts.append(f"{t.name}: {failed}")
            if not named:
                break
            # a program ends at its first failed test: the others have not been asked
            skipped.append(failed)
            if set(t.only) == set(skipped):
                break
    return {"caught": None, "test": None, "seconds": round(spent, 1), "ran": ran, "doubts": doubts}


# ------------------------------------------------------------------------------------------------ the report

def row(m, r):
    if r["caught"]:
        how = f"{r['caught']}: {r['test']}"
    elif m.survives:
        how = "survives: " + m.survives
    else:
        how = "SURVIVES " + (f"({', '.join(r['ran'])})" if r["ran"] else "(no test comes by)")
        if r.get("doubts"):
            how += f"; failed once and not again: {', '.join(r['doubts'])}"
    place = f"{m.file}:{m.line}"
    return f"{m.id:<30} {m.kind:<17} {place:<58} {how}"


def tell(mutants, results, all_):
    """The closing lines; whether all is well."""
    caught = [m for m in mutants if results[m.id]["caught"]]
    alive = [m for m in mutants if not results[m.id]["caught"]]
    where = collections.Counter(results[m.id]["caught"] for m in caught)
    print("\ncaught by")
    for name, n in where.most_common():
        print(f"   {n:4} {name}")
    for title, some in (("survivors with a reason", [m for m in alive if m.survives]),
                        ("SURVIVORS", [m for m in alive if not m.survives]),
                        ("caught now, though their list says why not", [m for m in caught if m.survives])):
        if some:
            print(title)
            for m in some:
                print(f"   {row(m, results[m.id])}")
    share = 100 * len(caught) / len(mutants)
    bad = sum(not m.survives for m in alive)
    if all_ and share < WANTED:
        print(f"   ! {share:.1f} % caught, at least {WANTED} are wanted")
        bad = max(bad, 1)
    if all_ and len(mutants) < LEAST:
        print(f"   ! {len(mutants)} mutants, at least {LEAST} are wanted")
        bad = max(bad, 1)
    print(f"mutants: {len(mutants) - bad} passed, {bad} failed ({len(caught)} caught, {share:.1f} %)")
    return bad == 0


def commit():
    try:
        told = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=TOP, capture_output=True, text=True)
        return told.stdout.strip()
    except OSError:
        return ""


def run(args):
    everything = load()
    mutants = [m for m in everything if not args.ids or any(m.id.startswith(i) for i in args.ids)]
    if not mutants:
        raise Broken("no mutant is called that")
    out = os.environ.get("TANDEM_OUT", os.path.join(TOP, "out"))
    work, report = os.path.join(out, "mutants"), os.path.join(out, "test/mutants.json")
    os.makedirs(work, exist_ok=True)
    os.makedirs(os.path.dirname(report), exist_ok=True)
    tree = os.path.join(work, "tree")
    state = copy(everything, tree)
    all_tests = build(mutants, tree, work)
    clean(all_tests, work)
    try:
        old = {m["id"]: m for m in json.loads(read(report))["mutants"]}
    except (OSError, ValueError, KeyError):
        old = {}
    results = {}
    for m in mutants:
        r = old.get(m.id)
        same = r and r["key"] == m.key() and not args.again
        if same and (r["state"] == state or args.keep and r["result"]["caught"]):
            results[m.id] = r["result"]
    print(f"   {len(mutants)} mutants, {len(results)} of them known from a run before", flush=True)

    def save():
        for m in mutants:
            if m.id in results:
                fresh = m.id not in old or old[m.id]["result"] is not results[m.id]
                old[m.id] = {"id": m.id, "key": m.key(), "kind": m.kind, "file": m.file, "line": m.line, "why": m.why,
                             "survives": m.survives, "state": state if fresh else old[m.id]["state"],
                             "result": results[m.id]}
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        known = [old[m.id] for m in everything if m.id in old]
        with open(report + ".new", "w", encoding="utf-8") as f:
            json.dump({"date": now, "commit": commit(), "state": state, "mutants": known}, f, indent=1)
        os.replace(report + ".new", report)

    print(f"{'mutant':<30} {'kind':<17} {'place':<58} caught by")
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        waiting = {m.id: pool.submit(judge, m, all_tests) for m in mutants if m.id not in results}
        try:
            for m in mutants:
                if m.id in waiting:
                    results[m.id] = waiting[m.id].result()
                    save()
                    print(row(m, results[m.id]) + f"  [{results[m.id]['seconds']} s]", flush=True)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    save()
    return 0 if tell(mutants, results, not args.ids) else 1


def table():
    out = os.environ.get("TANDEM_OUT", os.path.join(TOP, "out"))
    told = json.loads(read(os.path.join(out, "test/mutants.json")))
    columns = collections.Counter(m["result"]["caught"].split("/")[0].split()[0]
                                  for m in told["mutants"] if m["result"]["caught"])
    names = [n for n, _ in columns.most_common()]
    rows = collections.defaultdict(collections.Counter)
    for m in told["mutants"]:
        by = m["result"]["caught"]
        for row_ in ("/".join(m["file"].split("/")[:2]), "all"):
            rows[row_]["mutants"] += 1
            rows[row_][by.split("/")[0].split()[0] if by else "none"] += 1
    print(f"{told['date'][:10]}, commit {told['commit']}\n\n| folder | mutants | caught | " + " | ".join(names) + " |")
    print("|---" * (3 + len(names)) + "|")
    for name in sorted(rows, key=lambda n: (n == "all", n)):
        r = rows[name]
        cells = [f"`{name}`" if name != "all" else name, r["mutants"], r["mutants"] - r["none"], *(r[n] for n in names)]
        print("| " + " | ".join(map(str, cells)) + " |")
    print("\n| survivor | place | what it is, or why none can notice |\n|---|---|---|")
    print("\n".join(f"| {m['id']} | {m['file']}:{m['line']} | {m['survives'] or 'open: ' + m['why']} |"
                    for m in told["mutants"] if not m["result"]["caught"]))
    return 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = p.add_subparsers(dest="what", required=True)
    sub.add_parser("check")
    sub.add_parser("table")
    r = sub.add_parser("run")
    r.add_argument("ids", nargs="*", metavar="ID")
    r.add_argument("-j", "--jobs", type=int, default=1, help="mutants at once")
    r.add_argument("--again", action="store_true", help="also those that a run of this tree has judged")
    r.add_argument("--keep", action="store_true", help="not those that a run of an earlier tree has caught")
    args = p.parse_args()
    try:
        if args.what == "check":
            print(f"{len(load())} mutants")
            return 0
        return table() if args.what == "table" else run(args)
    except Broken as e:
        print(e, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
