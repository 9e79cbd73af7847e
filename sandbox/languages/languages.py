"""The languages, one declarative description each. A new language is one more entry of LANGUAGES.

Commands may hold `{tool}` (the real path of the first of `tools`), `{home}` (the folder of a toolchain
that has one of its own), `{prepared}` (see `toolchains.py`) and `{heap_mb}` (three quarters of the
memory limit, for runtimes that must be told).
"""

from dataclasses import dataclass, field

from sandbox.limits import COMPILE, DEFAULT, MIB, RunLimits

BUILD = "/build"
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp/work",
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
}


@dataclass(frozen=True)
class Language:
    """How programs of one language are built and started. Paths are paths in the jail."""

    name: str
    source: str
    """File name of the program."""
    package: str
    """The Debian package that brings the toolchain."""
    tools: tuple[str, ...] = ()
    """What must be on the host."""
    compile: tuple[str, ...] | None = None
    """Run once a program, in `/build` beside the source; None: nothing to compile (or to check)."""
    run: tuple[str, ...] = ()
    """Run once a test. Empty: Python, which is forked and not started."""
    binds: tuple[str, ...] = ()
    """Folders and files of the host that it needs to compile and run, read-only; absent ones are left out."""
    environment: dict[str, str] = field(default_factory=dict[str, str])
    limits: RunLimits = DEFAULT
    compile_limits: RunLimits = COMPILE


SYSTEM = ("/usr/bin", "/usr/lib", "/usr/lib64", "/usr/libexec", "/etc/alternatives")
_C_LIKE = (*SYSTEM, "/usr/include")
_MANAGED = RunLimits(memory_bytes=1024 * MIB, processes=256)
"""For runtimes with threads and heaps of their own."""

LANGUAGES: dict[str, Language] = {
    language.name: language
    for language in (
        Language(name="python", source="solution.py", package="python3"),
        Language(
            name="c",
            source="main.c",
            package="gcc",
            tools=("gcc",),
            compile=("/usr/bin/gcc", "-std=gnu17", "-O2", "-pthread", "-o", "program", "main.c", "-lm"),
            run=(f"{BUILD}/program",),
            binds=_C_LIKE,
        ),
        Language(
            name="cpp",
            source="main.cpp",
            package="g++",
            tools=("g++",),
            compile=("/usr/bin/g++", "-std=gnu++17", "-O2", "-pthread", "-o", "program", "main.cpp"),
            run=(f"{BUILD}/program",),
            binds=_C_LIKE,
        ),
        Language(
            name="java",
            source="Main.java",
            package="default-jdk-headless",
            tools=("javac", "java"),
            compile=(
                "{home}/bin/javac",
                "-J-XX:+UseSerialGC",
                "-J-Xmx512m",
                "-encoding",
                "UTF-8",
                "-d",
                ".",
                "Main.java",
            ),
            run=(
                "{home}/bin/java",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-Xss16m",
                "-Xmx{heap_mb}m",
                "-Dfile.encoding=UTF-8",
                "-cp",
                BUILD,
                "Main",
            ),
            binds=(*SYSTEM, "/etc/java-17-openjdk", "/etc/java-21-openjdk"),
            limits=_MANAGED,
        ),
        Language(
            name="go",
            source="main.go",
            package="golang-go",
            tools=("go",),
            compile=(
                "/usr/bin/sh",
                "-ec",
                "{home}/bin/go tool compile -p main -complete -importcfg {prepared}/importcfg -o main.a main.go; "
                "{home}/bin/go tool link -importcfg {prepared}/importcfg -o program main.a",
            ),
            run=(f"{BUILD}/program",),
            binds=(*SYSTEM, "/usr/share/go-1.19", "/usr/share/go-1.24"),
            environment={
                "GOCACHE": "/tmp/go-cache",
                "GOTOOLCHAIN": "local",
                "GOFLAGS": "-mod=mod",
                "GOTELEMETRY": "off",
            },
            limits=_MANAGED,
        ),
        Language(
            name="rust",
            source="main.rs",
            package="rustc",
            tools=("rustc", "gcc"),
            compile=(
                "{home}/bin/rustc",
                "--edition",
                "2021",
                "-O",
                "-C",
                "linker=/usr/bin/gcc",
                "-o",
                "program",
                "main.rs",
            ),
            run=(f"{BUILD}/program",),
            binds=_C_LIKE,
        ),
        Language(
            name="javascript",
            source="main.js",
            package="nodejs",
            tools=("node",),
            compile=("{tool}", "--check", "main.js"),
            run=("{tool}", "--stack-size=8000", f"{BUILD}/main.js"),
            binds=SYSTEM,
            limits=_MANAGED,
        ),
        Language(
            name="bash",
            source="main.sh",
            package="bash",
            tools=("bash",),
            # patterns that a script switches on while it runs are no syntax errors
            compile=("/usr/bin/bash", "-c", "bash -n main.sh 2> /dev/null || exec bash -O extglob -n main.sh"),
            run=("/usr/bin/bash", "--noprofile", "--norc", f"{BUILD}/main.sh"),
            binds=SYSTEM,
        ),
    )
}
