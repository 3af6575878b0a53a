/**
 * What proxies say to each other about their workloads, for labels of metrics: a sidecar or gateway writes its claim over whatever its
 * client sent; the proxy of a server stores the claim for the access log and removes it before any other filter and the application.
 * Whether it is believed is decided where it is counted (src/agent/access-logs).
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
  // Without the agent nothing gives a claim and nothing reads one; the application is not to have it.
  if (form === 'stats') return context.direction === 'inbound' && isReported ? [remove] : [];
  // A server removes the header even if it counts nothing: clients do not know that.
  if (context.direction === 'inbound') return [store, remove];
  return isReported ? [claim] : [];
};
