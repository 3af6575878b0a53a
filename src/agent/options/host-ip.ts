import { isIP } from 'node:net';

const mark = '$(HOST_IP)';

/** `$(HOST_IP)` becomes the address of the machine that the pod runs on, an IPv6 one in brackets, which may be there already. */
export function withHostIp(text: string, hostIp: string): string {
  if (isIP(hostIp) !== 6) return text.replaceAll(mark, () => hostIp);
  return text.replaceAll(`[${mark}]`, `[${hostIp}]`).replaceAll(mark, `[${hostIp}]`);
}
