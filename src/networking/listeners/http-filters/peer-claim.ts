/**
 * Passes workload identities between proxies, for labels of metrics. A sidecar or gateway overwrites its client's claim
 * with its own. The server's proxy stores the claim for the access log and removes it before any other filter and the
 * application. The component that counts decides whether the claim is trusted (src/agent/access-logs).
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

/** Name of the filter that changes the header. */
export const peerClaimFilter = 'chartpilot.peer-header';

const store = typedExtension('chartpilot.peer', SetFilterStateSchema, {
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

const remove = typedExtension(peerClaimFilter, HeaderMutationSchema, {
  mutations: { requestMutations: [{ action: { case: 'remove', value: peerHeader } }] },
});

const claim = typedExtension(peerClaimFilter, HeaderMutationSchema, {
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
  const { STANDARD_METRICS: form } = context.shape.metadata;
  if (form === undefined) return [];
  const isReported = telemetryOf(context, sideOf(context.direction)).standardMetrics !== undefined;
  // Without the agent no claim is sent or read, but the application must not receive one either.
  if (form === 'stats') return context.direction === 'inbound' && isReported ? [remove] : [];
  // A server removes the header even if it counts nothing, because clients cannot know that.
  if (context.direction === 'inbound') return [store, remove];
  return isReported ? [claim] : [];
};
