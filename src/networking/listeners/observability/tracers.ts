import type { HeaderValueOptionSchema, HeaderValueSchema } from '../../../gen/envoy/config/core/v3/base_pb.ts';
import { DatadogConfigSchema } from '../../../gen/envoy/config/trace/v3/datadog_pb.ts';
import { OpenTelemetryConfigSchema } from '../../../gen/envoy/config/trace/v3/opentelemetry_pb.ts';
import { SkyWalkingConfigSchema } from '../../../gen/envoy/config/trace/v3/skywalking_pb.ts';
import {
  ZipkinConfig_CollectorEndpointVersion,
  ZipkinConfigSchema,
} from '../../../gen/envoy/config/trace/v3/zipkin_pb.ts';
import { DynatraceResourceDetectorConfigSchema } from '../../../gen/envoy/extensions/tracers/opentelemetry/resource_detectors/v3/dynatrace_resource_detector_pb.ts';
import { EnvironmentResourceDetectorConfigSchema } from '../../../gen/envoy/extensions/tracers/opentelemetry/resource_detectors/v3/environment_resource_detector_pb.ts';
import { DynatraceSamplerConfigSchema } from '../../../gen/envoy/extensions/tracers/opentelemetry/samplers/v3/dynatrace_sampler_pb.ts';
import type { OpenTelemetryTracingProvider } from '../../../model/mesh/extension-providers.ts';
import { type TypedExtension, typedExtension } from '../../messages/any.ts';
import type { Init } from '../../messages/init.ts';
import { duration } from '../../messages/protobuf-duration.ts';
import type { ConnectionTracing } from '../../telemetry/connection-telemetry.ts';
import { grpcService } from './access-log-services.ts';

const reportTimeoutMs = 10_000;

type Tracer = NonNullable<ConnectionTracing['tracer']>;

export function tracerOf({ provider, cluster, host }: Tracer, serviceName: string): TypedExtension | undefined {
  switch (provider.type) {
    case 'zipkin':
      return typedExtension('envoy.tracers.zipkin', ZipkinConfigSchema, {
        collectorCluster: cluster,
        collectorEndpoint: provider.settings.path || '/api/v2/spans',
        collectorEndpointVersion: ZipkinConfig_CollectorEndpointVersion.HTTP_JSON,
        collectorHostname: host,
        traceId128bit: !(provider.settings.enable64bitTraceId ?? false),
        sharedSpanContext: false,
      });
    case 'datadog':
      return typedExtension('envoy.tracers.datadog', DatadogConfigSchema, {
        collectorCluster: cluster,
        collectorHostname: host,
        serviceName,
      });
    case 'skywalking':
      return typedExtension('envoy.tracers.skywalking', SkyWalkingConfigSchema, {
        grpcService: grpcService(cluster),
        clientConfig: {
          ...(provider.settings.accessToken && {
            backendTokenSpecifier: { case: 'backendToken', value: provider.settings.accessToken },
          }),
        },
      });
    case 'opentelemetry':
      return typedExtension('envoy.tracers.opentelemetry', OpenTelemetryConfigSchema, {
        serviceName,
        ...collector(provider.settings, cluster, host),
        resourceDetectors: resourceDetectors(provider.settings),
        ...sampler(provider.settings, cluster, host),
      });
    default:
      return undefined;
  }
}

type OpenTelemetryInit = Init<typeof OpenTelemetryConfigSchema>;
type Header = { readonly name: string; readonly value?: string };

function collector(
  { http, grpc, port }: OpenTelemetryTracingProvider,
  cluster: string,
  host: string,
): OpenTelemetryInit {
  if (http !== undefined) {
    return {
      httpService: {
        httpUri: httpUri(host, port, http.path, cluster, http.timeoutMs ?? reportTimeoutMs),
        requestHeadersToAdd: (http.headers ?? [])
          .filter(hasValue)
          .map(({ name, value }): Init<typeof HeaderValueOptionSchema> => ({ header: { key: name, value } })),
      },
    };
  }
  const initialMetadata = (grpc?.initialMetadata ?? [])
    .filter(hasValue)
    .map(({ name, value }): Init<typeof HeaderValueSchema> => ({ key: name, value }));
  return {
    grpcService: {
      ...grpcService(cluster),
      ...(grpc?.timeoutMs !== undefined && { timeout: duration(grpc.timeoutMs) }),
      ...(initialMetadata.length > 0 && { initialMetadata }),
    },
  };
}

/** Excludes values from the proxy's environment, which the control plane does not know. */
function hasValue(header: Header): header is Header & { readonly value: string } {
  return header.value !== undefined;
}

function httpUri(host: string, port: number, path: string, cluster: string, timeoutMs: number) {
  const uri = `http://${host}:${port}${path.startsWith('/') ? '' : '/'}${path}`;
  return { uri, httpUpstreamType: { case: 'cluster' as const, value: cluster }, timeout: duration(timeoutMs) };
}

function resourceDetectors({ resourceDetectors: detectors = {} }: OpenTelemetryTracingProvider) {
  return [
    ...(detectors.environment
      ? [
          typedExtension(
            'envoy.tracers.opentelemetry.resource_detectors.environment',
            EnvironmentResourceDetectorConfigSchema,
          ),
        ]
      : []),
    ...(detectors.dynatrace
      ? [
          typedExtension(
            'envoy.tracers.opentelemetry.resource_detectors.dynatrace',
            DynatraceResourceDetectorConfigSchema,
          ),
        ]
      : []),
  ].map(({ name, configType }) => ({ name, typedConfig: configType.value }));
}

function sampler(
  { dynatraceSampler: detectors, http, port }: OpenTelemetryTracingProvider,
  cluster: string,
  host: string,
) {
  if (detectors === undefined || http === undefined) return {};
  const { name, configType } = typedExtension(
    'envoy.tracers.opentelemetry.samplers.dynatrace',
    DynatraceSamplerConfigSchema,
    {
      tenant: detectors.tenant,
      clusterId: detectors.clusterId,
      rootSpansPerMinute: detectors.rootSpansPerMinute ?? 0,
      httpService: {
        httpUri: httpUri(host, port, `/e/${detectors.tenant}/api/v2/samplingConfiguration`, cluster, reportTimeoutMs),
      },
    },
  );
  return { sampler: { name, typedConfig: configType.value } };
}
