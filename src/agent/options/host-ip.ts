import { isIP } from 'node:net';

const placeholder = '$(HOST_IP)';

/** Adds missing brackets for IPv6. */
export function withHostIp(text: string, hostIp: string): string {
  if (isIP(hostIp) !== 6) return text.replaceAll(placeholder, () => hostIp);
  return text.replaceAll(`[${placeholder}]`, `[${hostIp}]`).replaceAll(placeholder, `[${hostIp}]`);
}
