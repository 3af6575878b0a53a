import type {
  ListenerFilter,
  ListenerFilterChainMatchPredicate,
} from '../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import type { Listener } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import type { RequestOutcome } from './outcome.ts';
import type { Question } from './question.ts';

export interface InspectedConnection {
  readonly transport: 'tls' | 'raw_buffer';
  /** Empty if unknown. */
  readonly serverName: string;
  readonly applicationProtocols: readonly string[];
}

const tlsInspector = 'type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector';
const httpInspector = 'type.googleapis.com/envoy.extensions.filters.listener.http_inspector.v3.HttpInspector';

/** Without a TLS inspector, a listener treats all connections as plaintext. */
export function inspectConnection(listener: Listener, { tls, http, destination }: Question): InspectedConnection {
  const inspects = (typeUrl: string): boolean => hasActiveInspector(typeUrl, listener, destination.port);
  if (tls && inspects(tlsInspector)) {
    return { transport: 'tls', serverName: tls.sni?.toLowerCase() ?? '', applicationProtocols: tls.alpn };
  }
  const isPlainHttp = tls === undefined && http !== undefined && inspects(httpInspector);
  return {
    transport: 'raw_buffer',
    serverName: '',
    applicationProtocols: isPlainHttp ? [plainProtocol(http.version)] : [],
  };
}

/** Maximum length of a request line; Envoy's HTTP inspector closes a connection if these bytes contain no complete line. */
const maxInspectedBytes = 64 * 1_024;
/** Number of bytes that the TLS inspector, which runs first, reads in one step. The HTTP inspector may wait indefinitely for more. */
const maxClientHelloBytes = 16 * 1_024;

export function httpInspectorOutcome(
  listener: Listener,
  { tls, http, destination }: Question,
): RequestOutcome | undefined {
  if (tls !== undefined || http === undefined || http.version === 'HTTP/2') return undefined;
  if (!hasActiveInspector(httpInspector, listener, destination.port)) return undefined;
  const bytes = `${http.method} ${http.path} ${http.version}\r\n`.length;
  if (bytes > maxInspectedBytes) {
    const reason = `the request line has ${bytes} bytes; the HTTP inspector reads at most ${maxInspectedBytes}`;
    return { kind: 'closed', why: reason };
  }
  if (bytes <= maxClientHelloBytes || !hasActiveInspector(tlsInspector, listener, destination.port)) return undefined;
  const reason =
    `the request line has ${bytes} bytes; if more than ${maxClientHelloBytes} arrive at once, the HTTP inspector ` +
    'behind the TLS inspector waits until the client closes the connection';
  return { kind: 'not decided', filter: 'envoy.filters.listener.http_inspector', why: reason };
}

function hasActiveInspector(typeUrl: string, { listenerFilters }: Listener, port: number): boolean {
  return listenerFilters.some((filter) => typeUrlOf(filter) === typeUrl && !isFilterDisabled(filter, port));
}

function plainProtocol(version: NonNullable<Question['http']>['version']): string {
  return version === 'HTTP/2' ? 'h2c' : version.toLowerCase();
}

function typeUrlOf({ configType }: ListenerFilter): string {
  return configType.case === 'typedConfig' ? configType.value.typeUrl : '';
}

function isFilterDisabled({ filterDisabled }: ListenerFilter, port: number): boolean {
  return filterDisabled !== undefined && matchesPort(filterDisabled, port);
}

function matchesPort({ rule }: ListenerFilterChainMatchPredicate, port: number): boolean {
  switch (rule.case) {
    case 'destinationPortRange':
      return port >= rule.value.start && port < rule.value.end;
    case 'notMatch':
      return !matchesPort(rule.value, port);
    case 'orMatch':
      return rule.value.rules.some((nestedRule) => matchesPort(nestedRule, port));
    case 'andMatch':
      return rule.value.rules.every((nestedRule) => matchesPort(nestedRule, port));
    case 'anyMatch':
      return rule.value;
    default:
      return false;
  }
}
