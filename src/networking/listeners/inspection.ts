/** Listener filters: what is learnt of a connection before its filter chain is chosen. */
import { create } from '@bufbuild/protobuf';
import {
  type ListenerFilter,
  type ListenerFilterChainMatchPredicate,
  ListenerFilterChainMatchPredicateSchema,
  ListenerFilterSchema,
} from '../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import { HttpInspectorSchema } from '../../gen/envoy/extensions/filters/listener/http_inspector/v3/http_inspector_pb.ts';
import { OriginalDstSchema } from '../../gen/envoy/extensions/filters/listener/original_dst/v3/original_dst_pb.ts';
import { TlsInspectorSchema } from '../../gen/envoy/extensions/filters/listener/tls_inspector/v3/tls_inspector_pb.ts';
import { typedExtension } from '../any.ts';

const originalDst = typedExtension('envoy.filters.listener.original_dst', OriginalDstSchema);
const tls = typedExtension('envoy.filters.listener.tls_inspector', TlsInspectorSchema);
const http = typedExtension('envoy.filters.listener.http_inspector', HttpInspectorSchema);

/**
 * Transport protocol of a connection that is not TLS. Once a chain of a listener (or of one of its ports) matches on it,
 * plain connections look no further than the chains that do: whoever adds one for HTTP adds one for other bytes.
 */
export const rawBuffer = 'raw_buffer';

/** What chains match on once the HTTP inspector has found HTTP. */
export const plaintextHttpAlpn: readonly string[] = ['http/1.1', 'h2c'];

export function plaintextAlpn(http10: boolean): string[] {
  return http10 ? ['http/1.0', ...plaintextHttpAlpn] : [...plaintextHttpAlpn];
}

/** Where a redirected connection was going. */
export function originalDestination(): ListenerFilter {
  return create(ListenerFilterSchema, originalDst);
}

/** @param exceptPorts destinations whose clients may wait for the server to speak first: nothing to look at there. */
export function tlsInspector(exceptPorts: readonly number[] = []): ListenerFilter {
  return create(ListenerFilterSchema, { ...tls, ...disabledOn(exceptPorts) });
}

/** @param exceptPorts destinations whose protocol is known. */
export function httpInspector(exceptPorts: readonly number[] = []): ListenerFilter {
  return create(ListenerFilterSchema, { ...http, ...disabledOn(exceptPorts) });
}

function disabledOn(ports: readonly number[]): { filterDisabled?: ListenerFilterChainMatchPredicate } {
  const rules = ports.map((port) =>
    create(ListenerFilterChainMatchPredicateSchema, {
      rule: { case: 'destinationPortRange', value: { start: port, end: port + 1 } },
    }),
  );
  if (rules.length === 0) return {};
  if (rules.length === 1) return { filterDisabled: rules[0]! };
  const rule = { case: 'orMatch' as const, value: { rules } };
  return { filterDisabled: create(ListenerFilterChainMatchPredicateSchema, { rule }) };
}
