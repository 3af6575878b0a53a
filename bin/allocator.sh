# Sourced by pilot-discovery: uses jemalloc if it is installed, as in the image.
#
# glibc's malloc returns memory only above the last allocation in use, so it keeps most memory of closed connections. jemalloc returns unused
# pages after five seconds (docs/scaling.md). oversize_threshold: Node reads into buffers of 64 KiB and keeps one for each connection with TLS;
# new pages of the system are resident only as far as they are written.
#
# allocator ROOT: exports LD_PRELOAD and MALLOC_CONF for the library below ROOT, unless LD_PRELOAD is set, even if it is empty.
allocator() {
  [ -z "${LD_PRELOAD+set}" ] || return 0
  library=
  if [ -e "$1/lib64/ld-linux-x86-64.so.2" ]; then library=$1/usr/lib/x86_64-linux-gnu/libjemalloc.so.2
  elif [ -e "$1/lib/ld-linux-aarch64.so.1" ]; then library=$1/usr/lib/aarch64-linux-gnu/libjemalloc.so.2
  fi
  [ -r "$library" ] || return 0
  export LD_PRELOAD="$library"
  export MALLOC_CONF="${MALLOC_CONF:-background_thread:true,narenas:2,dirty_decay_ms:5000,muzzy_decay_ms:0,oversize_threshold:65536}"
}
