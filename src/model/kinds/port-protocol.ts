import * as E from 'fp-ts/lib/Either.js';
import { type Decoded, type Decoder, fail, text } from '../fields/decode.ts';
import { withDescription } from '../fields/description.ts';
import type { ApplicationProtocol } from '../fields/protocol.ts';
import * as violation from '../fields/violation.ts';

const protocolByName: Readonly<Record<string, ApplicationProtocol>> = {
  HTTP: 'HTTP',
  HTTPS: 'HTTPS',
  GRPC: 'GRPC',
  'GRPC-WEB': 'GRPC-Web',
  HTTP2: 'HTTP2',
  HTTP_PROXY: 'HTTP_PROXY',
  MONGO: 'Mongo',
  REDIS: 'Redis',
  MYSQL: 'MySQL',
  TCP: 'TCP',
  TLS: 'TLS',
  UDP: 'UDP',
};

export function portProtocol(excludedProtocols: readonly ApplicationProtocol[] = []): Decoder<ApplicationProtocol> {
  const names = Object.keys(protocolByName).filter((name) => !excludedProtocols.includes(protocolByName[name]!));
  return withDescription(
    (value: unknown, path: string): Decoded<ApplicationProtocol> => {
      const protocol = typeof value === 'string' ? protocolByName[value.toUpperCase()] : undefined;
      if (protocol !== undefined && !excludedProtocols.includes(protocol)) return E.right(protocol);
      return fail(path, violation.unknownValue(names, value));
    },
    { type: 'narrowed', decoder: text, validation: { pattern: protocolPattern(excludedProtocols) } },
  );
}

export function protocolPattern(excludedProtocols: readonly string[]): string {
  return `^(?i:${Object.keys(protocolByName)
    .filter((name) => !excludedProtocols.includes(name))
    .join('|')})$`;
}
