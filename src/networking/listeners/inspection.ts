import { create } from '@bufbuild/protobuf';
import {
  type ListenerFilter,
  type ListenerFilterChainMatchPredicate,
  ListenerFilterChainMatchPredicate_MatchSetSchema,
  ListenerFilterChainMatchPredicateSchema,
  ListenerFilterSchema,
} from '../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import { HttpInspectorSchema } from '../../gen/envoy/extensions/filters/listener/http_inspector/v3/http_inspector_pb.ts';
import { OriginalDstSchema } from '../../gen/envoy/extensions/filters/listener/original_dst/v3/original_dst_pb.ts';
import { OriginalSrcSchema } from '../../gen/envoy/extensions/filters/listener/original_src/v3/original_src_pb.ts';
import { TlsInspectorSchema } from '../../gen/envoy/extensions/filters/listener/tls_inspector/v3/tls_inspector_pb.ts';
import { Int32RangeSchema } from '../../gen/envoy/type/v3/range_pb.ts';
import { typedExtension } from '../messages/any.ts';

const originalDst = typedExtension('envoy.filters.listener.original_dst', OriginalDstSchema);
/** Packet mark that exempts packets from TPROXY redirection. */
const transparentMark = 1337;
const originalSrc = typedExtension('envoy.filters.listener.original_src', OriginalSrcSchema, {
  mark: transparentMark,
});
const tlsInspectorFilter = typedExtension('envoy.filters.listener.tls_inspector', TlsInspectorSchema);
const httpInspectorFilter = typedExtension('envoy.filters.listener.http_inspector', HttpInspectorSchema);

/**
 * Transport protocol of plaintext connections. If any chain of a listener (for the same port) matches it, Envoy considers only such chains for
 * plaintext. A plaintext HTTP chain therefore requires another chain for other plaintext.
 */
export const rawBuffer = 'raw_buffer';

const plaintextHttpAlpn: readonly string[] = ['http/1.1', 'h2c'];

export function plaintextAlpn(http10: boolean): string[] {
  return http10 ? ['http/1.0', ...plaintextHttpAlpn] : [...plaintextHttpAlpn];
}

export function originalDestination(): ListenerFilter {
  return create(ListenerFilterSchema, originalDst);
}

export type PortChoice = { readonly except: readonly number[] } | { readonly only: readonly number[] };

const everyPort: PortChoice = { except: [] };

export function matchingPortChoice(
  ports: readonly { readonly port: number; readonly matches: boolean }[],
  matchesOtherPorts: boolean,
): PortChoice | undefined {
  const exceptions = ports.filter(({ matches }) => matches !== matchesOtherPorts).map(({ port }) => port);
  if (matchesOtherPorts) return { except: exceptions };
  return exceptions.length === 0 ? undefined : { only: exceptions };
}

/** The filter waits for the first bytes of the client, so it is omitted for server-first protocols unless a chain depends on it. */
export function tlsInspector(ports: PortChoice = everyPort): ListenerFilter {
  return create(ListenerFilterSchema, { ...tlsInspectorFilter, ...disabledExceptOn(ports) });
}

/** The filter waits for the first bytes of the client. */
export function httpInspector(ports: PortChoice = everyPort): ListenerFilter {
  return create(ListenerFilterSchema, { ...httpInspectorFilter, ...disabledExceptOn(ports) });
}

/** Connects to the application from the client's address (TPROXY), with marked packets. */
export function originalSource(): ListenerFilter {
  return create(ListenerFilterSchema, originalSrc);
}

type Predicate = ListenerFilterChainMatchPredicate;

function disabledExceptOn(portChoice: PortChoice): { filterDisabled?: Predicate } {
  if ('only' in portChoice)
    return { filterDisabled: matchPredicate({ case: 'notMatch', value: anyPortOf(portChoice.only) }) };
  return portChoice.except.length === 0 ? {} : { filterDisabled: anyPortOf(portChoice.except) };
}

function anyPortOf(ports: readonly number[]): Predicate {
  const rules = ports.map((port) =>
    matchPredicate({ case: 'destinationPortRange', value: create(Int32RangeSchema, { start: port, end: port + 1 }) }),
  );
  if (rules.length === 1) return rules[0]!;
  return matchPredicate({
    case: 'orMatch',
    value: create(ListenerFilterChainMatchPredicate_MatchSetSchema, { rules }),
  });
}

function matchPredicate(rule: Predicate['rule']): Predicate {
  return create(ListenerFilterChainMatchPredicateSchema, { rule });
}
