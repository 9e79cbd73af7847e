"""The languages. A new one is one more entry of LANGUAGES, and nothing else."""

from sandbox.inside.protocol import BUILD
from sandbox.languages.java import java_entry
from sandbox.languages.language import C_LIKE, MANAGED, SYSTEM, Language
from sandbox.languages.prepare import go_packages, rust_home

LANGUAGES: dict[str, Language] = {
    language.name: language
    for language in (
        Language(
            name="python",
            source="solution.py",
            package="python3",
            fences=(
                "python",
                "py",
                "python3",
                "py3",
                "pypy",
                "pypy3",
                "ipython",
            ),
            endings=(".py",),
        ),
        Language(
            name="c",
            source="main.c",
            package="gcc",
            fences=("c",),
            endings=(".c",),
            tools=("gcc",),
            standard="gnu17",
            compile=("/usr/bin/gcc", "-std={standard}", "-O2", "-pthread", "-o", "program", "main.c", "-lm"),
            run=(f"{BUILD}/program",),
            binds=C_LIKE,
        ),
        Language(
            name="cpp",
            source="main.cpp",
            package="g++",
            fences=(
                "cpp",
                "c++",
                "cxx",
                "cc",
            ),
            endings=(
                ".cpp",
                ".cc",
                ".cxx",
            ),
            tools=("g++",),
            standard="gnu++20",
            compile=("/usr/bin/g++", "-std={standard}", "-O2", "-pthread", "-o", "program", "main.cpp"),
            run=(f"{BUILD}/program",),
            binds=C_LIKE,
        ),
        Language(
            name="java",
            source="Main.java",
            package="default-jdk-headless",
            fences=("java",),
            endings=(".java",),
            tools=("javac", "java"),
            entry=java_entry,
            compile=(
                "{home}/bin/javac",
                "-J-XX:+UseSerialGC",
                "-J-Xmx512m",
                "-encoding",
                "UTF-8",
                "-d",
                ".",
                "{source}",
            ),
            run=(
                "{home}/bin/java",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-Xss{stack_kb}k",
                "-Xmx{heap_mb}m",
                "-Dfile.encoding=UTF-8",
                "-cp",
                BUILD,
                "{main}",
            ),
            binds=(*SYSTEM, "/etc/java-17-openjdk", "/etc/java-21-openjdk"),
            limits=MANAGED,
        ),
        Language(
            name="go",
            source="main.go",
            package="golang-go",
            fences=(
                "go",
                "golang",
            ),
            endings=(".go",),
            tools=("go",),
            prepare=go_packages,
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
            limits=MANAGED,
        ),
        Language(
            name="rust",
            source="main.rs",
            package="rustc",
            fences=(
                "rust",
                "rs",
            ),
            endings=(".rs",),
            tools=("rustc", "gcc"),
            standard="2021",
            home=rust_home,
            compile=(
                "{home}/bin/rustc",
                "--edition",
                "{standard}",
                "-O",
                "-C",
                "linker=/usr/bin/gcc",
                "-o",
                "program",
                "main.rs",
            ),
            run=(f"{BUILD}/program",),
            binds=C_LIKE,
        ),
        Language(
            name="javascript",
            source="main.js",
            package="nodejs",
            fences=(
                "javascript",
                "js",
                "node",
                "nodejs",
            ),
            endings=(
                ".js",
                ".cjs",
            ),
            tools=("node",),
            compile=("{tool}", "--check", "main.js"),
            run=("{tool}", "--stack-size={stack_kb}", f"{BUILD}/main.js"),
            binds=SYSTEM,
            limits=MANAGED,
        ),
        Language(
            name="bash",
            source="main.sh",
            package="bash",
            fences=(
                "bash",
                "sh",
                "shell",
            ),
            endings=(".sh",),
            tools=("bash",),
            # patterns that a script switches on while it runs are no syntax errors
            compile=("/usr/bin/bash", "-c", "bash -n main.sh 2> /dev/null || exec bash -O extglob -n main.sh"),
            run=("/usr/bin/bash", "--noprofile", "--norc", f"{BUILD}/main.sh"),
            binds=SYSTEM,
        ),
    )
}


def by_ending(ending: str) -> Language | None:
    """Find the language of a file by the ending of its name."""
    return next((language for language in LANGUAGES.values() if ending in language.endings), None)
