/** What a listener's filters find out about a connection before its filter chain is chosen. */
import type {
  ListenerFilter,
  ListenerFilterChainMatchPredicate,
} from '../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import type { Listener } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import type { Question } from './question.ts';

/** What filter chains match on, as Envoy knows it of a connection. */
export interface Inspected {
  readonly transport: 'tls' | 'raw_buffer';
  /** Empty: not known. */
  readonly serverName: string;
  readonly applicationProtocols: readonly string[];
}

const tlsInspector = 'type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector';
const httpInspector = 'type.googleapis.com/envoy.extensions.filters.listener.http_inspector.v3.HttpInspector';

/** A connection is plain to a listener that does not look for TLS. */
export function inspect({ listenerFilters }: Listener, { tls, http, destination }: Question): Inspected {
  const looks = (typeUrl: string): boolean =>
    listenerFilters.some((filter) => typeUrlOf(filter) === typeUrl && !isDisabled(filter, destination.port));
  if (tls && looks(tlsInspector)) {
    return { transport: 'tls', serverName: tls.sni?.toLowerCase() ?? '', applicationProtocols: tls.alpn };
  }
  const isPlainHttp = tls === undefined && http !== undefined && looks(httpInspector);
  return {
    transport: 'raw_buffer',
    serverName: '',
    applicationProtocols: isPlainHttp ? [plainProtocol(http.version)] : [],
  };
}

function plainProtocol(version: NonNullable<Question['http']>['version']): string {
  return version === 'HTTP/2' ? 'h2c' : version.toLowerCase();
}

function typeUrlOf({ configType }: ListenerFilter): string {
  return configType.case === 'typedConfig' ? configType.value.typeUrl : '';
}

function isDisabled({ filterDisabled }: ListenerFilter, port: number): boolean {
  return filterDisabled !== undefined && holds(filterDisabled, port);
}

function holds({ rule }: ListenerFilterChainMatchPredicate, port: number): boolean {
  switch (rule.case) {
    case 'destinationPortRange':
      return port >= rule.value.start && port < rule.value.end;
    case 'notMatch':
      return !holds(rule.value, port);
    case 'orMatch':
      return rule.value.rules.some((one) => holds(one, port));
    case 'andMatch':
      return rule.value.rules.every((one) => holds(one, port));
    case 'anyMatch':
      return rule.value;
    default:
      return false;
  }
}
