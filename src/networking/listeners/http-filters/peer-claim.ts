/**
 * Exchanges workload identities between proxies in a header, for metric labels. The server's proxy stores the header for the access log and removes
 * it before other filters. The agent decides whether to trust the identity (src/agent/access-logs).
 */
import { HeaderValueOption_HeaderAppendAction as Append } from '../../../gen/envoy/config/core/v3/base_pb.ts';
import { HeaderMutationSchema } from '../../../gen/envoy/extensions/filters/http/header_mutation/v3/header_mutation_pb.ts';
import { ConfigSchema as SetFilterStateSchema } from '../../../gen/envoy/extensions/filters/http/set_filter_state/v3/set_filter_state_pb.ts';
import { peerHeader, peerVariable } from '../../../model/standard-metrics/peer-claim.ts';
import { peerStateKey } from '../../../model/standard-metrics/stream-rules.ts';
import { typedExtension } from '../../messages/any.ts';
import { telemetryOf } from '../../telemetry/connection-telemetry.ts';
import { sideOf } from '../../telemetry/mode.ts';
import type { HttpFilterContributor } from './contributor.ts';

export const peerClaimFilter = 'chartpilot.peer-header';

const storeFilter = typedExtension('chartpilot.peer', SetFilterStateSchema, {
  onRequestHeaders: [
    {
      key: { case: 'objectKey', value: peerStateKey },
      factoryKey: 'envoy.string',
      value: {
        case: 'formatString',
        value: {
          format: {
            case: 'textFormatSource',
            value: { specifier: { case: 'inlineString', value: `%REQ(${peerHeader})%` } },
          },
          omitEmptyValues: true,
        },
      },
      skipIfEmpty: true,
    },
  ],
});

const removeFilter = typedExtension(peerClaimFilter, HeaderMutationSchema, {
  mutations: { requestMutations: [{ action: { case: 'remove', value: peerHeader } }] },
});

const claimFilter = typedExtension(peerClaimFilter, HeaderMutationSchema, {
  mutations: {
    requestMutations: [
      {
        action: {
          case: 'append',
          value: {
            header: { key: peerHeader, value: `%ENVIRONMENT(${peerVariable})%` },
            appendAction: Append.OVERWRITE_IF_EXISTS_OR_ADD,
          },
        },
      },
    ],
  },
});

export const peerClaim: HttpFilterContributor = (context) => {
  const { STANDARD_METRICS: metricsMode } = context.shape.metadata;
  if (metricsMode === undefined) return [];
  const reportsMetrics = telemetryOf(context, sideOf(context.direction)).standardMetrics !== undefined;
  // Without an agent, the header has no use, but it must not reach the application.
  if (metricsMode === 'stats') return context.direction === 'inbound' && reportsMetrics ? [removeFilter] : [];
  // A server always removes the header, because clients send it regardless of the server's settings.
  if (context.direction === 'inbound') return [storeFilter, removeFilter];
  return reportsMetrics ? [claimFilter] : [];
};
