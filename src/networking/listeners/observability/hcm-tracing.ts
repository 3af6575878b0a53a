import type { HttpConnectionManager_TracingSchema } from '../../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts';
import type { CustomTagSchema } from '../../../gen/envoy/type/tracing/v3/custom_tag_pb.ts';
import type { CustomTag } from '../../../model/kinds/extensions/telemetry.ts';
import type { TelemetryProvider } from '../../../model/mesh/extension-providers.ts';
import type { ConnectionContext } from '../../inputs/connection-context.ts';
import type { Init } from '../../messages/init.ts';
import { type ConnectionTracing, telemetryOf } from '../../telemetry/connection-telemetry.ts';
import { sideOf } from '../../telemetry/mode.ts';
import { tracerOf } from './tracers.ts';

type TracingInit = Init<typeof HttpConnectionManager_TracingSchema>;
type TagInit = Init<typeof CustomTagSchema>;

export function tracingFields(context: ConnectionContext): {
  tracing?: TracingInit;
} {
  const { tracing, settings } = telemetryOf(context, sideOf(context.direction));
  if (tracing === undefined) return {};
  const { tracer, workload } = tracing;
  const maxLength = maxTagLength(tracer?.provider) ?? settings.tracing.maxPathTagLength;
  return {
    tracing: {
      // Requests that the client marks for tracing are always traced, others at the configured sampling rate.
      clientSampling: { value: 100 },
      randomSampling: { value: tracing.sampling ?? 0 },
      overallSampling: { value: 100 },
      customTags: tagsOf(tracing),
      ...(maxLength !== undefined && { maxPathTagLength: maxLength }),
      ...(tracer && { provider: tracerOf(tracer, workload.serviceName) }),
    },
  };
}

function maxTagLength(provider: TelemetryProvider | undefined): number | undefined {
  return provider !== undefined && 'maxTagLength' in provider.settings ? provider.settings.maxTagLength : undefined;
}

/** Tags of users override tags of the mesh. */
function tagsOf({ customTags = {}, istioTags, workload }: ConnectionTracing): TagInit[] {
  const workloadTags = istioTags ? Object.entries(workload.tags).map(([tag, value]) => literal(tag, value)) : [];
  const configuredTags = Object.entries(customTags).flatMap(([tag, settings]) => tagOf(tag, settings));
  const tagByName = new Map([...workloadTags, ...configuredTags].map((init) => [init.tag!, init]));
  return [...tagByName.values()].sort((a, b) => (a.tag! < b.tag! ? -1 : 1));
}

/** Omits tags with a formatter, which the vendored Envoy API does not contain. */
function tagOf(tag: string, { literal: literalTag, environment, header }: CustomTag): TagInit[] {
  if (literalTag !== undefined) return [literal(tag, literalTag.value)];
  if (environment !== undefined) return [{ tag, type: { case: 'environment', value: environment } }];
  if (header !== undefined) return [{ tag, type: { case: 'requestHeader', value: header } }];
  return [];
}

function literal(tag: string, value: string): TagInit {
  return { tag, type: { case: 'literal', value: { value } } };
}
