/** An address has the form `xds://config.example.com:15010?optional=30s&versions=v1alpha3&protocol=sotw`. */
import type { XdsProtocol } from '../../../../machines/discovery/config/xds-source-protocol.ts';
import { durationMsOf, maxTimerMs } from '../../../model/fields/duration.ts';
import { parseHostAndPort } from '../../../model/mesh/proxy-config.ts';
import { messageOf } from '../../../runtime/errors.ts';

export interface SourceAddress {
  readonly host: string;
  readonly port: number;
  /** Maximum time that startup waits for the server. `null` means no limit, unless a saved state exists. */
  readonly optionalMs: number | null;
  /** If empty, requests prefer the versions of current Istio to older ones. */
  readonly versions: readonly string[];
  readonly protocol: XdsProtocol | 'auto';
}

const parameters = ['optional', 'versions', 'protocol'];

/** @throws Error whose message is a predicate about the address */
export function parseSourceAddress(address: string): SourceAddress {
  const [, authority = '', query = ''] = /^xds:\/\/([^?]*)(?:\?(.*))?$/i.exec(address) ?? [];
  const hostAndPort = parseHostAndPort(authority.replace(/\/$/, ''));
  if (hostAndPort === undefined) throw new Error('must have a host and port, such as xds://config.example.com:15010');
  const searchParams = new URLSearchParams(query);
  for (const name of searchParams.keys()) {
    if (!parameters.includes(name))
      throw new Error(`has the unknown parameter "${name}": known are ${parameters.join(', ')}`);
  }
  return {
    ...hostAndPort,
    optionalMs: optionalOf(searchParams.get('optional')),
    versions: versionsOf(searchParams.get('versions')),
    protocol: protocolOf(searchParams.get('protocol')),
  };
}

/** Why the address is invalid, as a predicate about the address. `undefined` if it is valid. */
export function sourceAddressProblem(address: string): string | undefined {
  try {
    parseSourceAddress(address);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

function optionalOf(text: string | null): number | null {
  if (text === null) return null;
  const ms = durationMsOf(text);
  if (ms === undefined || ms < 0 || ms > maxTimerMs)
    throw new Error(`optional must be a duration such as 30s, got "${text}"`);
  return ms;
}

function versionsOf(text: string | null): readonly string[] {
  if (text === null) return [];
  const versions = text.split(',').map((version) => version.trim());
  const invalidVersion = versions.find((version) => !/^v\d+((alpha|beta)\d+)?$/.test(version));
  if (invalidVersion !== undefined) throw new Error(`versions must be a list such as v1,v1alpha3, got "${text}"`);
  return versions;
}

function protocolOf(text: string | null): XdsProtocol | 'auto' {
  if (text === null || text === 'auto' || text === 'sotw' || text === 'delta') return text ?? 'auto';
  throw new Error(`protocol must be auto, sotw or delta, got "${text}"`);
}
