/* Starts one judged program: what `kernel.Confinement.drop` does, without a fork of the interpreter.
 *
 * The init spawns this (a vfork: nothing is copied), and it becomes the program. Descriptors: 0-2 as they
 * are to be, 3 the failure pipe (closed by a successful exec), 4 the seccomp filter's instructions.
 *
 * launch UID USERS CPU_SECONDS TASKS FILES STACK_BYTES FOLDER PROGRAM [ARGUMENT...]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FAILURE = 3, FILTER = 4, LAST_CAPABILITY = 63, MAX_INSTRUCTIONS = 1024 };

static void need(int ok, const char *what) {
    if (ok)
        return;
    dprintf(FAILURE, "%s: %s", what, strerror(errno));
    _exit(125);
}

static void put(const char *path, const char *text) {
    int file = open(path, O_WRONLY | O_CLOEXEC);
    need(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text), path);
    close(file);
}

static void limit(int which, rlim_t value) {
    struct rlimit now;
    need(getrlimit(which, &now) == 0, "getrlimit");
    if (now.rlim_max != RLIM_INFINITY && value > now.rlim_max)
        value = now.rlim_max;
    now.rlim_cur = now.rlim_max = value;
    need(setrlimit(which, &now) == 0, "setrlimit");
}

/* Programs raise this one themselves: memory is what bounds it. */
static void stack(rlim_t value) {
    struct rlimit now;
    need(getrlimit(RLIMIT_STACK, &now) == 0, "getrlimit");
    now.rlim_cur = now.rlim_max != RLIM_INFINITY && value > now.rlim_max ? now.rlim_max : value;
    need(setrlimit(RLIMIT_STACK, &now) == 0, "setrlimit");
}

static void become(unsigned uid) {
    char map[32];
    snprintf(map, sizeof map, "%u 0 1", uid);
    need(unshare(CLONE_NEWUSER) == 0, "unshare");
    need(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0, "set dumpable");
    put("/proc/self/setgroups", "deny");
    put("/proc/self/uid_map", map);
    put("/proc/self/gid_map", map);
}

static void drop(unsigned uid, int users) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {{0}};
    struct sock_filter instructions[MAX_INSTRUCTIONS];
    ssize_t size = pread(FILTER, instructions, sizeof instructions, 0);
    struct sock_fprog program = {(unsigned short)(size / (ssize_t)sizeof *instructions), instructions};

    need(size > 0, "read the filter");
    if (users)
        need(setgroups(0, NULL) == 0, "setgroups");
    else
        become(uid);
    for (int capability = 0; capability <= LAST_CAPABILITY; capability++)
        if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0)
            break; /* past the last one that this kernel knows */
    need(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0, "clear ambient capabilities");
    need(setresgid(uid, uid, uid) == 0, "setresgid");
    need(setresuid(uid, uid, uid) == 0, "setresuid");
    need(syscall(SYS_capset, &header, none) == 0, "capset");
    need(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0, "set dumpable");
    need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges");
    need(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0, "seccomp");
}

int main(int count, char **words, char **environment) {
    errno = EINVAL;
    need(count >= 9, "launch");
    need(fcntl(FAILURE, F_SETFD, FD_CLOEXEC) == 0, "failure pipe");
#ifdef SYS_close_range
    syscall(SYS_close_range, FILTER + 1, ~0U, 0); /* none is inherited; this is the second lock */
#endif
    need(setsid() >= 0, "setsid");
    need(chdir(words[7]) == 0, words[7]);
    put("/proc/self/oom_score_adj", "1000");
    umask(022);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    if (atoi(words[4]) > 0)
        limit(RLIMIT_NPROC, (rlim_t)atoll(words[4]));
    limit(RLIMIT_CPU, (rlim_t)atoll(words[3]));
    limit(RLIMIT_NOFILE, (rlim_t)atoll(words[5]));
    stack((rlim_t)atoll(words[6]));
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_MEMLOCK, 1 << 16);
    limit(RLIMIT_MSGQUEUE, 0);
    limit(RLIMIT_RTPRIO, 0);
    drop((unsigned)atoi(words[1]), atoi(words[2]));
    close(FILTER);
    execve(words[8], words + 8, environment);
    dprintf(FAILURE, "exec: %s", strerror(errno));
    _exit(126);
}
