/** What counts as a name, an address, a host: the checks that several kinds share. Each returns a mistake or undefined. */
import { isIP, isIPv4 } from 'node:net';

const label = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/i;

/** A DNS-1123 label: `web-1`. */
export function isDnsLabel(text: string): boolean {
  return label.test(text);
}

/** The name of a namespace, as Kubernetes has it: a label in lower case. */
export function isNamespace(text: string): boolean {
  return isDnsLabel(text) && text === text.toLowerCase();
}

/** A DNS-1123 subdomain as Kubernetes has it for object names. */
export function isObjectName(text: string): boolean {
  return text.length <= 253 && /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/.test(text);
}

/** `a.example.com`, without a wildcard; underscores are allowed in labels but the last, as in real DNS. */
export function isHostname(text: string): boolean {
  if (text.length === 0 || text.length > 255) return false;
  const labels = text.replace(/\.$/, '').split('.');
  // Names that stand for a cluster have labels of underscores alone: `outbound_.15010_._.istiod.istio-system.svc`.
  return labels.every((part, index) => label.test(index === labels.length - 1 ? part : part.replaceAll('_', 'x')));
}

/** `*`, `*.example.com` or a host name. */
export function isHostOrWildcard(text: string): boolean {
  if (text === '*') return true;
  return isHostname(text.startsWith('*.') ? text.slice(2) : text);
}

/** What is wrong with a host that may be a wildcard, a partial one too: `*x.example.com`, `*-x.example.com`. */
export function anyHostMistake(host: string): string | undefined {
  return isHostname(host.replace(/^\*-?/, '')) ? undefined : hostMistake(host);
}

/** A warning for a partial wildcard. */
export function partialWildcardWarning(host: string): string | undefined {
  const partial = host.startsWith('*') && host !== '*' && !host.startsWith('*.');
  return partial ? `${host} is for every name that ends so, in other domains too: probably *. is meant` : undefined;
}

export function isIpAddress(text: string): boolean {
  return isIP(text) !== 0;
}

/** `10.0.0.0/8`, `2001:db8::/32`. */
export function isCidr(text: string): boolean {
  const [address = '', bits = '', ...more] = text.split('/');
  if (more.length > 0 || !/^\d{1,3}$/.test(bits) || !isIpAddress(address)) return false;
  return Number(bits) <= (isIPv4(address) ? 32 : 128);
}

/** What is wrong with a host that may be a wildcard. */
export function hostMistake(host: string): string | undefined {
  if (isHostOrWildcard(host)) return undefined;
  if (host.includes('*')) return `must be *, or *. and a domain, or a host name without *, not ${JSON.stringify(host)}`;
  return `must be a host name, not ${JSON.stringify(host)}`;
}

/** `.`, `*`, `~` or a namespace. */
export function exportTargetMistake(target: string): string | undefined {
  if (target === '.' || target === '*' || target === '~' || isDnsLabel(target)) return undefined;
  return `must be ".", "*", "~" or a namespace, not ${JSON.stringify(target)}`;
}
