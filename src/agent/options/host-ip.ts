import { isIP } from 'node:net';

const mark = '$(HOST_IP)';

/** Adds missing brackets for IPv6. */
export function withHostIp(text: string, hostIp: string): string {
  if (isIP(hostIp) !== 6) return text.replaceAll(mark, () => hostIp);
  return text.replaceAll(`[${mark}]`, `[${hostIp}]`).replaceAll(mark, `[${hostIp}]`);
}
