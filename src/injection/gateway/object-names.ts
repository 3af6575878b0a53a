/** Names of the objects that run a Gateway. */
import { hash } from 'node:crypto';

/** Names of Services, and values of labels, may not be longer. */
export const maxNameCharacters = 63;
const hashCharacters = 10;

/** A Service's name: older API servers take no other one. */
const serviceName = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;

export function isServiceName(name: string): boolean {
  return name.length <= maxNameCharacters && serviceName.test(name);
}

/**
 * `GATEWAY-CLASS`. A name that no Service may have, or that is too long, is shortened and ends in a hash, so that two Gateways never share a name.
 */
export function defaultNameOf(gateway: string, className: string): string {
  const name = `${gateway}-${className}`;
  if (isServiceName(name)) return name;
  const plain = name.replace(/[^-a-z0-9]/g, '-').replace(/^(?![a-z])/, 'g-');
  const kept = plain.slice(0, maxNameCharacters - hashCharacters - 1).replace(/-+$/, '');
  return `${kept}-${hash('sha256', name, 'hex').slice(0, hashCharacters)}`;
}
