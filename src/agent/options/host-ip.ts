import { isIP } from 'node:net';

const mark = '$(HOST_IP)';

/** Replaces `$(HOST_IP)` with the address of the pod's node; IPv6 gets brackets unless they are already there. */
export function withHostIp(text: string, hostIp: string): string {
  if (isIP(hostIp) !== 6) return text.replaceAll(mark, () => hostIp);
  return text.replaceAll(`[${mark}]`, `[${hostIp}]`).replaceAll(mark, `[${hostIp}]`);
}
