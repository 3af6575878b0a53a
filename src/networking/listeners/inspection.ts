/** Listener filters: what is learnt of a connection before its filter chain is chosen. */
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
/** The mark that rules for transparent redirection let pass. */
const transparentMark = 1337;
const originalSrc = typedExtension('envoy.filters.listener.original_src', OriginalSrcSchema, {
  mark: transparentMark,
});
const tls = typedExtension('envoy.filters.listener.tls_inspector', TlsInspectorSchema);
const http = typedExtension('envoy.filters.listener.http_inspector', HttpInspectorSchema);

/**
 * Transport protocol of a connection that is not TLS. Once a chain of a listener (or of one of its ports) matches on it,
 * plain connections look no further than the chains that do: whoever adds one for HTTP adds one for other bytes.
 */
export const rawBuffer = 'raw_buffer';

/** What chains match on once the HTTP inspector has found HTTP. */
const plaintextHttpAlpn: readonly string[] = ['http/1.1', 'h2c'];

export function plaintextAlpn(http10: boolean): string[] {
  return http10 ? ['http/1.0', ...plaintextHttpAlpn] : [...plaintextHttpAlpn];
}

/** Where a redirected connection was going. */
export function originalDestination(): ListenerFilter {
  return create(ListenerFilterSchema, originalDst);
}

/** Destination ports at which something is looked at: all but some, or some alone. */
export type PortChoice = { readonly except: readonly number[] } | { readonly only: readonly number[] };

const everyPort: PortChoice = { except: [] };

/** Undefined when there is no port to look at. */
export function portsWhere(
  ports: readonly { readonly port: number; readonly holds: boolean }[],
  holdsElsewhere: boolean,
): PortChoice | undefined {
  const exceptions = ports.filter(({ holds }) => holds !== holdsElsewhere).map(({ port }) => port);
  if (holdsElsewhere) return { except: exceptions };
  return exceptions.length === 0 ? undefined : { only: exceptions };
}

/**
 * Whether a connection is TLS, and what it offers. It waits for the client's first bytes: where the client may wait for
 * the server to speak first, and nothing depends on it, it is left out.
 */
export function tlsInspector(ports: PortChoice = everyPort): ListenerFilter {
  return create(ListenerFilterSchema, { ...tls, ...disabledBut(ports) });
}

/** Whether a plain connection speaks HTTP. It waits for the client's first bytes. */
export function httpInspector(ports: PortChoice = everyPort): ListenerFilter {
  return create(ListenerFilterSchema, { ...http, ...disabledBut(ports) });
}

/** Connections to the application come from the client's address: Envoy takes it over, and marks its packets. */
export function originalSource(): ListenerFilter {
  return create(ListenerFilterSchema, originalSrc);
}

type Predicate = ListenerFilterChainMatchPredicate;

function disabledBut(choice: PortChoice): { filterDisabled?: Predicate } {
  if ('only' in choice) return { filterDisabled: predicate({ case: 'notMatch', value: anyOf(choice.only) }) };
  return choice.except.length === 0 ? {} : { filterDisabled: anyOf(choice.except) };
}

function anyOf(ports: readonly number[]): Predicate {
  const rules = ports.map((port) =>
    predicate({ case: 'destinationPortRange', value: create(Int32RangeSchema, { start: port, end: port + 1 }) }),
  );
  if (rules.length === 1) return rules[0]!;
  return predicate({
    case: 'orMatch',
    value: create(ListenerFilterChainMatchPredicate_MatchSetSchema, { rules }),
  });
}

function predicate(rule: Predicate['rule']): Predicate {
  return create(ListenerFilterChainMatchPredicateSchema, { rule });
}
