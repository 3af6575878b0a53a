# Sourced by pilot-discovery: derives the limit of Node's heap from the memory limit of the container.
#
# By default, V8 limits the heap to half of a container's memory and ends the program there, although the other half is free. Memory outside
# the heap is used by the cache of encoded resources (PILOT_XDS_CACHE_BYTES, a quarter of the memory), buffers and code.

# Share of the heap, in eighths of the memory limit.
heap_eighths=5
min_heap_mib=64

# lower VALUE: lowers $limit to this number of bytes. Ignores other texts, and numbers of more than 18 digits, with which cgroup v1 means "no limit".
lower() {
  case $1 in '' | *[!0-9]*) return ;; esac
  [ ${#1} -le 18 ] || return 0
  if [ -z "$limit" ] || [ "$1" -lt "$limit" ]; then limit=$1; fi
}

# heap_limit CGROUPS MOUNT MEMINFO: sets $heap to the flag for Node; empty if the container has no limit, or NODE_OPTIONS contains the flag.
heap_limit() {
  heap= limit=
  case ${NODE_OPTIONS:-} in *max[-_]old[-_]space[-_]size*) return 0 ;; esac
  if [ -r "$1" ]; then
    while IFS=: read -r id controllers path; do
      case $id:,$controllers, in
        0:,,) mount=$2 file=memory.max ;;
        *,memory,*) mount=$2/memory file=memory.limit_in_bytes ;;
        *) continue ;;
      esac
      # The limits of all parent groups apply. In a container, the path may be that of the host and not exist; the mount is that of the container.
      while :; do
        if [ -r "$mount$path/$file" ]; then
          read -r value <"$mount$path/$file" && lower "$value"
        fi
        case $path in '' | /) break ;; esac
        path=${path%/*}
      done
    done <"$1"
  fi
  lower "${CHARTPILOT_MEMORY_LIMIT_BYTES:-}"
  [ "$limit" ] || return 0
  while read -r key value unit; do
    if [ "$key" = MemTotal: ] && [ "$limit" -ge $((value * 1024)) ]; then return 0; fi
  done <"$3"
  heap_mib=$((limit / 1048576 * heap_eighths / 8))
  [ "$heap_mib" -ge "$min_heap_mib" ] || heap_mib=$min_heap_mib
  heap=--max-old-space-size=$heap_mib
}
