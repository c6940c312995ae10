#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small checks of the tree: `lint.py CHECK`, one of CHECKS below. One line per finding; exit 1 if there is one."""

import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SKIP = {".git", "target", "out", "__pycache__", ".pytest_cache", "node_modules"}
LONGEST = 800
GENERATED = {"abi/rust/src/generated.rs"}
LICENCE = {"kernel/include/uapi/": "GPL-2.0 WITH Linux-syscall-note", "kernel/": "GPL-2.0",
           "abi/tandem": "GPL-2.0 WITH Linux-syscall-note"}


def files(*endings):
    for folder, folders, names in os.walk(TOP):
        folders[:] = sorted(f for f in folders if f not in SKIP)
        for name in sorted(names):
            if name.endswith(endings):
                yield os.path.relpath(os.path.join(folder, name), TOP)


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as f:
        return f.read()


def licences():
    """C, shell and Python files name their licence; each crate's manifest takes the workspace's."""
    for path in [*files(".c", ".h", ".sh", ".py"), "run", ".ci/run"]:
        if not read(path).strip():
            continue
        want = next((text for start, text in LICENCE.items() if path.startswith(start)), "Apache-2.0")
        head = "\n".join(read(path).splitlines()[:4])
        m = re.search(r"SPDX-License-Identifier: ([^*\n]+?)\s*(\*/)?$", head, re.M)
        if not m:
            yield f"{path}: no SPDX-License-Identifier in its first four lines (wanted: {want})"
        elif m.group(1) != want and not path.startswith("abi/"):
            yield f"{path}: licensed {m.group(1)}, wanted: {want}"
    for path in files("Cargo.toml"):
        if path != "Cargo.toml" and "license.workspace = true" not in read(path):
            yield f"{path}: no license.workspace = true"


def length():
    """A file is about one thing: {LONGEST} lines at most."""
    for path in files(".rs", ".c", ".h", ".py", ".sh"):
        n = read(path).count("\n")
        if n > LONGEST and path not in GENERATED:
            yield f"{path}: {n} lines, at most {LONGEST}: split it by topic"


def unsafe():
    """Modules that allow unsafe code are those that docs/unsafe.md lists, and the other way round."""
    text = read("docs/unsafe.md")
    listed = set(re.findall(r"`([^`]+\.rs)`", text))
    found = set()
    for path in files(".rs"):
        body = read(path)
        if re.search(r"^\s*#!?\[allow\([^)]*unsafe_code", body, re.M):
            found.add(path)
            if path not in listed:
                yield f"{path}: allows unsafe code and is not in docs/unsafe.md"
            lines = body.splitlines()
            for i, line in enumerate(lines):
                if re.search(r"\bunsafe\s*(\{|impl)", line) and not line.lstrip().startswith("//"):
                    near = "\n".join(lines[max(0, i - 8):i + 1])
                    if "SAFETY" not in near:
                        yield f"{path}:{i + 1}: unsafe without a SAFETY comment above it"
    for path in sorted(listed - found):
        yield f"docs/unsafe.md lists {path}, which does not allow unsafe code or is not there"


def slug(title):
    title = re.sub(r"[`*]", "", title.strip().lower())
    return re.sub(r"[^\w\- ]", "", title).replace(" ", "-")


def links():
    """Relative links in Markdown lead to a file, and to a heading if they name one."""
    for path in files(".md"):
        body = re.sub(r"```.*?```", "", read(path), flags=re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", body):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            there = os.path.normpath(os.path.join(TOP, os.path.dirname(path), name or os.path.basename(path)))
            if not os.path.exists(there):
                yield f"{path}: link to {target}: no such file"
            elif anchor and there.endswith(".md"):
                with open(there, encoding="utf-8") as f:
                    slugs = {slug(t) for t in re.findall(r"^#+ (.*)$", f.read(), re.M)}
                if anchor not in slugs:
                    yield f"{path}: link to {target}: no such heading"


def findings():
    """The table in docs/testing.md has a row for each section of docs/findings.md, in their order; tests that are named
    with their crate exist."""
    sections = [slug(t) for t in re.findall(r"^### (.*)$", read("docs/findings.md"), re.M)]
    rows = re.findall(r"^\| \[[^]]+\]\(findings\.md#([^)]+)\) \|", read("docs/testing.md"), re.M)
    yield from (f"docs/findings.md: no row in docs/testing.md for {s}" for s in sections if s not in rows)
    yield from (f"docs/testing.md: two rows for {r}" for r in sorted(set(rows)) if rows.count(r) > 1)
    if not sections:
        yield "docs/findings.md: no sections"
    elif sorted(rows) == sorted(sections) and rows != sections:
        first = next(r for r, s in zip(rows, sections) if r != s)
        yield f"docs/testing.md: the row of {first} is not where its section is in docs/findings.md"
    yield from tests_of_findings()


# Keys of the API that keep the name which they had first
KEPT = re.compile(r'"news_lost"|\("n[e]ws", (7|"USENET n[e]ws")\)|\|n[e]ws\|')  # and a facility of syslog


def words():
    """What docs/glossary.md calls replaced is in no document, but as code; nor in code."""
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \| ([^|]*)\|$", read("docs/glossary.md"), re.M)
    replaced = {word.strip(): term for term, words in rows for word in words.split(",") if word.strip()}
    replaced.pop("instead of", None)
    if not replaced:
        yield "docs/glossary.md: no word is replaced, or its tables are written otherwise now"
        return
    one = re.compile(r"(?<![-\w])(" + "|".join(map(re.escape, replaced)) + r")s?(?![-\w])", re.I)
    for path in [*files(".md")]:
        if path == "docs/glossary.md" or not (path.startswith("docs/") or "/" not in path):
            continue
        # code keeps its line breaks, so that the numbers of lines are right
        body = re.sub(r"```.*?```|`[^`\n]+`|\]\([^)\s]*\)", lambda m: "\n" * m[0].count("\n"), read(path), flags=re.S)
        for n, line in enumerate(body.splitlines(), 1):
            for word in one.findall(line):
                yield f"{path}:{n}: \"{word}\": docs/glossary.md says \"{replaced[word.lower()]}\""
    names = "|".join(re.escape(w).replace("\\ ", "[ _]") for w in replaced)
    one = re.compile(rf"(?<![A-Za-z0-9])({names})s?(?![A-Za-z0-9])", re.I)
    for path in files(".rs", ".c", ".h", ".py", ".sh"):
        if path in GENERATED:
            continue
        for n, line in enumerate(read(path).splitlines(), 1):
            for word in one.findall(KEPT.sub("", line)):
                term = replaced[word.lower().replace("_", " ")]
                yield f"{path}:{n}: \"{word}\": docs/glossary.md says \"{term}\""


# What a driver's file calls its static functions by, where it is not by its own name
PREFIXES = {"backend/null/": "null", "backend/pci/": "cp", "ring/event": "cp_event", "ring/frame": "cp_frame",
            "ring/packet": "cp_packet", "ring/queue": "cp_queue", "ring/region": "cp_region", "ring/ring.c": "cp_ring",
            "ring/ring.h": "cp_region", "clsw/resource/bank": "bank", "clsw/resource/rm": "rm",
            "clsw/resource/resource.h": "rm", "clsw/devlink/devlink.c": "dl",
            "clsw/devlink/resource.c": "res", "clsw/genl/genl.c": "gnl", "clsw/l2/state.c": "vstate",
            "clsw/l3/neigh.c": "nbr", "clsw/l3/nexthop.c": "nh", "clsw/port/ethtool.c": "et",
            "clsw/port/netdev.c": "port", "clsw/port/platform.c": "board", "clsw/rm.c": "crm"}
# They stand for the kernel's own headers in user space
SHIMS = ("kernel/clsw/cover/env.h", "kernel/clsw/resource/env.h")


def statics():
    """A static function of the driver has its file's prefix (or clsw_), and its name is nobody else's."""
    where, prefixes = {}, {}
    for path in files(".c", ".h"):
        if not path.startswith(("kernel/clsw/", "kernel/ring/", "kernel/backend/")) or path in SHIMS:
            continue
        inside = path.removeprefix("kernel/")
        folder, name = os.path.split(inside)
        prefix = next((p for start, p in PREFIXES.items() if inside.startswith(start)), os.path.splitext(name)[0])
        if prefixes.setdefault(prefix, folder) != folder:
            yield f"{path}: its prefix {prefix}_ is that of {prefixes[prefix]}, too: tools/lint.py, PREFIXES"
        body = re.sub(r"/\*.*?\*/|^#.*?(?<!\\)$", lambda m: "\n" * m[0].count("\n"), read(path), flags=re.S | re.M)
        # a name and its parameters, then the body; not what initialises a variable
        for m in re.finditer(r"^(static )?(?!return|else)[a-z_][^;={}()#]*?\b(\w+)\([^;{}]*\)\s*\{", body, re.M):
            at = f"{path}:{body.count(chr(10), 0, m.start(2)) + 1}"
            if m[2] in where:
                yield f"{at}: {m[2]}() is in {where[m[2]]}, too"
            where.setdefault(m[2], at)
            if m[1] and not m[2].startswith((prefix + "_", "clsw_")):
                yield f"{at}: static {m[2]}() has no prefix: {prefix}_"
    if not where:
        yield "kernel: no function of the driver was found"


# What a promise calls a crate by, and where that is
CRATES = {"store": "switch/store", "switchd": "switch/switchd", "core": "switch/core", "netlink": "switch/netlink",
          "pipeline": "asic/pipeline", "firmware": "asic/firmware", "tables": "asic/tables", "queues": "asic/queues",
          "asicd": "asic/asicd", "abi": "abi/rust", "carrier": "abi/carrier", "linux": "linux", "fuzz": "fuzz",
          "CLI": "tools/tandem", "twin": "tests/twin", "cli": "tools/tandem", "protocol": "openflow/protocol",
          "ofpipeline": "openflow/pipeline", "offload": "openflow/offload", "compose": "openflow/compose",
          "ofchip": "openflow/chip", "ofkeep": "openflow/keep", "agent": "openflow/agent",
          "vlans": "appliance/vlans", "swchip": "appliance/chip", "grammar": "appliance/grammar",
          "console": "appliance/console", "rstp": "appliance/rstp", "snoop": "appliance/snoop",
          "swkernel": "appliance/kernel", "swstack": "appliance/stack", "swsecret": "appliance/secret",
          "swfrr": "appliance/frr", "swcfgd": "appliance/swcfgd"}


def sources(place):
    """The texts below a folder, or of a file."""
    if os.path.isfile(os.path.join(TOP, place)):
        return [read(place)]
    return [read(p) for p in files(".rs", ".c", ".py", ".sh") if p.startswith(place + "/")]


def named(place, name):
    """A function of this name, or (in quotes or with spaces) a case that is called so, or a module `name::*`."""
    if name.endswith("::*"):
        stem = re.escape(name[:-3])
        return any(re.search(f"/{stem}(/mod)?\\.rs$", p) for p in files(".rs") if p.startswith(place + "/"))
    one = re.escape(name)
    whole = re.compile(rf"\b(fn|def) {one}\b" if re.fullmatch(r"\w+", name) else rf"{one}")
    return any(whole.search(text) for text in sources(place))


def promises():
    """Each test that a row of SPECIFICATION.md names is in the crate or the file that it names before it."""
    asked, script = 0, None
    one = re.compile(r"\b(" + "|".join(CRATES) + r") (?=`)|`([^`]+)`(: (?=`)| \((?=`))?")
    for n, line in enumerate(read("SPECIFICATION.md").splitlines(), 1):
        row = re.match(r"\| (\d+\.\d+\w?) [^|]*\|(.*)\|$", line)
        if not row:
            continue
        crate = place = None
        for word, code, colon in one.findall(row[2]):
            asked += 1
            at = f"SPECIFICATION.md:{n}: {row[1]}:"
            if word:
                crate = place = CRATES[word]
                continue
            test = re.fullmatch(r"cargo test -p tandem-(\S+) (\w+)", code)
            path, _, name = code.partition("::")
            if code.startswith("./run ") or code.startswith("tests/vm/run "):
                continue
            if test:
                if not named(CRATES[test[1]], test[2]):
                    yield f"{at} no {test[2]} in {CRATES[test[1]]}"
            elif path == "…" or re.search(r"/|\.(py|sh|rs)$", path):
                tops = ["", "tests", "tests/vm", *([crate, crate + "/src"] if crate else [])]
                there = [os.path.normpath(os.path.join(top, path)) for top in tops]
                there = [p for p in there if os.path.exists(os.path.join(TOP, p))]
                found = script if path == "…" else there[0] if there else None
                if not found:
                    yield f"{at} no file {path}" + (f" in {crate}" if crate else "")
                    continue
                script = found if found.endswith(".py") else script
                place = found if colon else crate or found
                if name and not named(found, name):
                    yield f"{at} no {name} in {found}"
            elif not place:
                yield f"{at} {code}: in which crate?"
            elif not named(place, code):
                yield f"{at} no {code} in {place}"
    if not asked:
        yield "SPECIFICATION.md: no row names a test, or its tables are written otherwise now"


def tests_of_findings():
    """Each test that docs/findings.md names with its crate, or as a filter of `cargo test`, is in that crate."""
    places = CRATES | {"packet": "asic/packet", "cover": "switch/cover"}
    crate = re.compile(r"\b(" + "|".join(places) + r")\s((?:`[^`]+`(?:,\s| and\s)?)+)")
    asked = 0
    for m in re.finditer(r"^\*Test\*: (.*?)(?:\n\n|\Z)", read("docs/findings.md"), re.M | re.S):
        text = m[1]
        for name, codes in crate.findall(text):
            for code in re.findall(r"`([^`]+)`", codes):
                asked += 1
                if not in_crate(places[name], code):
                    yield f"docs/findings.md: no {code} in {places[name]}"
        for line in re.findall(r"`cargo test ([^`]+)`", text):
            asked += 1
            words = line.split()
            if not all(name in places for name in re.findall(r"-p tandem-(\S+)", line)):
                yield f"docs/findings.md: cargo test {line}: no such crate"
                continue
            folders = [places[name] for name in re.findall(r"-p tandem-(\S+)", line)]
            values = [b for a, b in zip(words, words[1:]) if a in ("-p", "--test")]
            programs = [b for a, b in zip(words, words[1:]) if a == "--test"]
            for program in programs:
                if not any(in_crate(f, f"tests/{program}{end}") for f in folders for end in (".rs", "/main.rs")):
                    yield f"docs/findings.md: cargo test {line}: no {program}"
            filters = [w.strip(":") for w in words if not w.startswith("-") and w not in values]
            for wanted in filters:
                if "it" in programs and f"{wanted}::" in words:
                    there = any(in_crate(f, f"tests/it/{wanted}.rs") for f in folders)
                else:
                    there = any(in_crate(f, wanted) or filtered(f, wanted) for f in folders)
                if not there:
                    yield f"docs/findings.md: cargo test {line}: no {wanted}"
    if not asked:
        yield "docs/findings.md: no section names a test, or they are written otherwise now"


def in_crate(folder, code):
    """A file of the crate, a function or a module."""
    if "/" in code:
        return any(os.path.exists(os.path.join(TOP, folder, top, code)) for top in ("", "src"))
    last = code.split("::")[-1]
    return named(folder, last) or named(folder, last + "::*")


def filtered(folder, part):
    """A test whose name or file has this part."""
    stems = [os.path.basename(p) for p in files(".rs") if p.startswith(folder + "/")]
    return any(part in s for s in stems) or any(re.search(rf"\bfn \w*{re.escape(part)}", t) for t in sources(folder))


def examples():
    """`./run test` asks no rustdoc for code in doc comments: a block there says what else it is."""
    blocks = 0
    for path in files(".rs"):
        inside = False
        for n, line in enumerate(read(path).splitlines(), 1):
            fence = re.match(r"\s*//[/!]\s*(```|~~~)\s*(\w*)", line)
            if not fence:
                continue
            inside = not inside
            blocks += inside
            code = r"|rust|should_panic|no_run|compile_fail|ignore|test_harness|standalone\w*|edition\d+"
            if inside and re.fullmatch(code, fence[2]):
                yield f"{path}:{n}: code that is never run: say what it is (```text), or make it a test"
    if not blocks:
        yield "no doc comment has a block, or they are written otherwise now"


def modules():
    """A file of a crate's tests/it that its main.rs does not name is compiled, and run, by nobody."""
    programs = 0
    for path in files("main.rs"):
        folder = os.path.dirname(path)
        if not folder.endswith("tests/it"):
            continue
        programs += 1
        for p in files(".rs"):
            if p == path or not p.startswith(folder + "/"):
                continue
            stem = p.removeprefix(folder + "/").removesuffix(".rs").removesuffix("/mod")
            top, _, name = stem.rpartition("/")
            above = [f"{folder}/{top}.rs", f"{folder}/{top}/mod.rs"] if top else [path]
            there = (read(a) for a in above if os.path.exists(os.path.join(TOP, a)))
            if not any(re.search(rf"^(pub )?mod {name};", text, re.M) for text in there):
                yield f"{p}: no `mod {name};` above it, so nobody runs it"
    if not programs:
        yield "no crate has a tests/it/main.rs, or it is elsewhere now"


CHECKS = {"licences": licences, "length": length, "unsafe": unsafe, "links": links, "findings": findings,
          "words": words, "promises": promises, "statics": statics, "examples": examples, "modules": modules}


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in CHECKS:
        sys.exit(f"usage: lint.py {'|'.join(CHECKS)}")
    found = list(CHECKS[sys.argv[1]]())
    for f in found:
        print(f)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
