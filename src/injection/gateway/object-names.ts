import { hash } from 'node:crypto';

export const maxNameCharacters = 63;
const hashCharacters = 10;

/** Older API servers accept no other names for Services. */
const serviceName = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;

export function isServiceName(name: string): boolean {
  return name.length <= maxNameCharacters && serviceName.test(name);
}

/** A name that is too long or invalid for a Service is shortened and ends in a hash, so that two Gateways never share a name. */
export function defaultNameOf(gateway: string, className: string): string {
  const name = `${gateway}-${className}`;
  if (isServiceName(name)) return name;
  const sanitizedName = name.replace(/[^-a-z0-9]/g, '-').replace(/^(?![a-z])/, 'g-');
  const keptPrefix = sanitizedName.slice(0, maxNameCharacters - hashCharacters - 1).replace(/-+$/, '');
  return `${keptPrefix}-${hash('sha256', name, 'hex').slice(0, hashCharacters)}`;
}
