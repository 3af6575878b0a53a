/** A service of the mesh, as `host` or `namespace/host`. */
export interface ProviderAddress {
  readonly service: string;
  readonly port: number;
}

export interface LogFormat {
  readonly text?: string;
  /** A JSON object whose strings are format strings. */
  readonly labels?: Readonly<Record<string, unknown>>;
}

export interface FileAccessLogProvider {
  readonly path: string;
  readonly logFormat?: LogFormat;
  readonly omitEmptyValues?: boolean;
}

export interface TcpAccessLogProvider extends ProviderAddress {
  readonly logName?: string;
  readonly filterStateObjectsToLog?: readonly string[];
}

export interface GrpcAccessLogProvider extends TcpAccessLogProvider {
  readonly additionalRequestHeadersToLog?: readonly string[];
  readonly additionalResponseHeadersToLog?: readonly string[];
  readonly additionalResponseTrailersToLog?: readonly string[];
}

export interface OpenTelemetryAccessLogProvider extends ProviderAddress {
  readonly logName?: string;
  /** Text becomes the body, labels become attributes; both are optional. */
  readonly logFormat?: LogFormat;
}

export interface ZipkinProvider extends ProviderAddress {
  readonly maxTagLength?: number;
  readonly enable64bitTraceId?: boolean;
  readonly path?: string;
}

export interface DatadogProvider extends ProviderAddress {
  readonly maxTagLength?: number;
}

export interface SkyWalkingProvider extends ProviderAddress {
  readonly accessToken?: string;
}

export interface OpenTelemetryTracingProvider extends ProviderAddress {
  readonly maxTagLength?: number;
  readonly http?: {
    readonly path: string;
    readonly timeoutMs?: number;
    readonly headers?: readonly { readonly name: string; readonly value?: string; readonly envName?: string }[];
  };
  readonly grpc?: {
    readonly timeoutMs?: number;
    readonly initialMetadata?: readonly { readonly name: string; readonly value?: string; readonly envName?: string }[];
  };
  readonly resourceDetectors?: { readonly environment?: object; readonly dynatrace?: object };
  readonly dynatraceSampler?: {
    readonly tenant: string;
    readonly clusterId: number;
    readonly rootSpansPerMinute?: number;
  };
}

export type TelemetryProvider = { readonly name: string } & (
  | { readonly type: 'envoyFileAccessLog'; readonly settings: FileAccessLogProvider }
  | { readonly type: 'envoyHttpAls'; readonly settings: GrpcAccessLogProvider }
  | { readonly type: 'envoyTcpAls'; readonly settings: TcpAccessLogProvider }
  | { readonly type: 'envoyOtelAls'; readonly settings: OpenTelemetryAccessLogProvider }
  | { readonly type: 'zipkin'; readonly settings: ZipkinProvider }
  | { readonly type: 'datadog'; readonly settings: DatadogProvider }
  | { readonly type: 'skywalking'; readonly settings: SkyWalkingProvider }
  | { readonly type: 'opentelemetry'; readonly settings: OpenTelemetryTracingProvider }
  | { readonly type: 'prometheus'; readonly settings: object }
);

export type ProviderType = TelemetryProvider['type'];
