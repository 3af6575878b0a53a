/** The `…Violation` functions return `undefined` for a valid value. */

import { isIP, isIPv4 } from 'node:net';
import * as violation from './violation.ts';

const label = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/i;

export function isDnsLabel(text: string): boolean {
  return label.test(text);
}

export function isNamespace(text: string): boolean {
  return isDnsLabel(text) && text === text.toLowerCase();
}

export function isObjectName(text: string): boolean {
  return text.length <= 253 && /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/.test(text);
}

/** Wildcards are rejected. Underscores are allowed in all labels but the last, as in real DNS. */
export function isHostname(text: string): boolean {
  if (text.length === 0 || text.length > 255) return false;
  const labels = text.replace(/\.$/, '').split('.');
  // Host names of clusters have labels of only underscores, such as `outbound_.15010_._.istiod.istio-system.svc`.
  return labels.every((labelText, index) =>
    label.test(index === labels.length - 1 ? labelText : labelText.replaceAll('_', 'x')),
  );
}

export function isHostOrWildcard(text: string): boolean {
  if (text === '*') return true;
  return isHostname(text.startsWith('*.') ? text.slice(2) : text);
}

export function anyHostViolation(host: string): violation.FieldViolation | undefined {
  return isHostname(host.replace(/^\*-?/, '')) ? undefined : hostViolation(host);
}

export function partialWildcardWarning(host: string): violation.FieldViolation | undefined {
  const isPartial = host.startsWith('*') && host !== '*' && !host.startsWith('*.');
  return isPartial
    ? violation.doubtfulValue(`${host} matches every name with this suffix, also in other domains; did you mean *.?`)
    : undefined;
}

export function isIpAddress(text: string): boolean {
  return isIP(text) !== 0;
}

export function isCidr(text: string): boolean {
  const [address = '', bits = '', ...otherParts] = text.split('/');
  if (otherParts.length > 0 || !/^\d{1,3}$/.test(bits) || !isIpAddress(address)) return false;
  return Number(bits) <= (isIPv4(address) ? 32 : 128);
}

export function hostViolation(host: string): violation.FieldViolation | undefined {
  if (isHostOrWildcard(host)) return undefined;
  if (host.includes('*')) return violation.mustBe('*, or *. and a domain, or a host name without *', host);
  return violation.mustBe('a host name', host);
}

export function exportTargetViolation(target: string): violation.FieldViolation | undefined {
  if (target === '.' || target === '*' || target === '~' || isDnsLabel(target)) return undefined;
  return violation.mustBe('".", "*", "~" or a namespace', target);
}
