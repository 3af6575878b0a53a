import type { AsyncDataSourceSchema } from '../../gen/envoy/config/core/v3/base_pb.ts';
import type { ConfigKey } from '../../model/config/config.ts';
import type { WasmPlugin } from '../../model/kinds/extensions/wasm-plugin.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { type Service, serviceKey } from '../../model/services/service.ts';
import type { Init } from '../messages/init.ts';
import { duration } from '../messages/protobuf-duration.ts';
import { providerCluster } from '../telemetry/provider-cluster.ts';

const fetchTimeoutMs = 30_000;
/** Envoy's default of one retry within a second is too few for a warming cluster or a restarting server. The backoff doubles from 1 to 10 seconds. */
const fetchRetries = 5;

export interface WasmSource {
  readonly code: Init<typeof AsyncDataSourceSchema> | undefined;
  /** The cluster from which Envoy fetches the code; `undefined` for a file, and for code that the agent fetches. */
  readonly cluster?: string;
  readonly isFetchedByAgent?: true;
  readonly dependsOn: readonly ConfigKey[];
}

/** Placeholder cluster for code that the agent fetches, as in Istio's agent. */
const agentCluster = '_';

/**
 * Envoy reads files, and fetches HTTP URLs of services in the mesh if a checksum is configured. An agent with `WASM_FETCH` fetches all other HTTP
 * URLs, and all registry images (`oci://`).
 */
export function wasmSource({ url, sha256 = '' }: WasmPlugin, shape: ProxyShape, push: PushContext): WasmSource {
  const { protocol, hostname, port, pathname } = new URL(url);
  if (protocol === 'file:') {
    const filename = decodeURIComponent(pathname);
    return {
      code: { specifier: { case: 'local', value: { specifier: { case: 'filename', value: filename } } } },
      dependsOn: [],
    };
  }
  const agentCode = shape.metadata.WASM_FETCH === undefined ? undefined : remoteCode(url, sha256, agentCluster);
  if (sha256 === '' || protocol === 'oci:') return { code: agentCode, isFetchedByAgent: true, dependsOn: [] };
  const number = Number(port) || (protocol === 'https:' ? 443 : 80);
  const provider = providerCluster({ service: hostname, port: number }, shape, push);
  const dependsOn = servicesNamed(hostname, push).map(serviceKey);
  if (provider === undefined) return { code: agentCode, isFetchedByAgent: true, dependsOn };
  return { code: remoteCode(url, sha256, provider.cluster), cluster: provider.cluster, dependsOn };
}

function remoteCode(uri: string, sha256: string, cluster: string): Init<typeof AsyncDataSourceSchema> {
  const httpUri = {
    uri,
    httpUpstreamType: { case: 'cluster' as const, value: cluster },
    timeout: duration(fetchTimeoutMs),
  };
  return {
    specifier: { case: 'remote', value: { httpUri, sha256, retryPolicy: { numRetries: fetchRetries } } },
  };
}

function servicesNamed(hostname: string, { services }: PushContext): readonly Service[] {
  return services.filter((service) => service.hostname === hostname);
}
