/**
 * A control plane that sends fixed resources to one proxy over ADS (state of the world) and records rejections. It
 * does not use the project's ADS server, so that Envoy checks generated resources independently of it.
 */
import { create, fromBinary, type MessageShape, toBinary } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import { type MethodDefinition, Server, ServerCredentials, type ServerDuplexStream } from '@grpc/grpc-js';
import {
  type DiscoveryRequest,
  DiscoveryRequestSchema,
  type DiscoveryResponse,
  DiscoveryResponseSchema,
} from '../../src/gen/envoy/service/discovery/v3/discovery_pb.ts';
import type { EnvoyResource } from '../../src/networking/index.ts';

export interface AdsStandIn {
  readonly port: number;
  /** Error messages of rejected responses. */
  readonly refusals: readonly string[];
  /** Type URLs of accepted responses. */
  readonly accepted: ReadonlySet<string>;
  close(): void;
}

type Stream = ServerDuplexStream<DiscoveryRequest, DiscoveryResponse>;

const aggregatedPath = '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources';
/** SDS method that the agent serves to its Envoy. */
const secretsPath = '/envoy.service.secret.v3.SecretDiscoveryService/StreamSecrets';
const typePrefix = 'type.googleapis.com/';

/**
 * @param resources resources of all types. Responses contain the requested names, or all resources of the type if the
 * request has no names.
 */
export async function startAdsStandIn(resources: readonly EnvoyResource[]): Promise<AdsStandIn> {
  const refusals: string[] = [];
  const acceptedTypes = new Set<string>();
  const server = new Server();
  const serve = (stream: Stream): void => {
    const requestedNames = new Map<string, string>();
    stream.on('error', () => stream.end());
    stream.on('end', () => stream.end());
    stream.on('data', (request: DiscoveryRequest) => {
      const { typeUrl, responseNonce, errorDetail } = request;
      if (errorDetail) refusals.push(errorDetail.message);
      else if (responseNonce !== '') acceptedTypes.add(typeUrl);
      const names = [...request.resourceNames].sort().join(' ');
      if (requestedNames.get(typeUrl) === names) return;
      requestedNames.set(typeUrl, names);
      stream.write(responseTo(request, resources, requestedNames.size));
    });
  };
  const method = (path: string): MethodDefinition<DiscoveryRequest, DiscoveryResponse> => ({
    path,
    requestStream: true,
    responseStream: true,
    requestDeserialize: (bytes: Buffer): MessageShape<typeof DiscoveryRequestSchema> =>
      fromBinary(DiscoveryRequestSchema, bytes),
    requestSerialize: (request: DiscoveryRequest): Buffer => Buffer.from(toBinary(DiscoveryRequestSchema, request)),
    responseSerialize: (response: DiscoveryResponse): Buffer =>
      Buffer.from(toBinary(DiscoveryResponseSchema, response)),
    responseDeserialize: (bytes: Buffer): DiscoveryResponse => fromBinary(DiscoveryResponseSchema, bytes),
  });
  server.addService(
    { aggregated: method(aggregatedPath), secrets: method(secretsPath) },
    { aggregated: serve, secrets: serve },
  );
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  );
  return { port, refusals, accepted: acceptedTypes, close: () => server.forceShutdown() };
}

function responseTo(
  { typeUrl, resourceNames }: DiscoveryRequest,
  resources: readonly EnvoyResource[],
  round: number,
): DiscoveryResponse {
  const requested = resources.filter(
    ({ schema, name }) =>
      `${typePrefix}${schema.typeName}` === typeUrl && (resourceNames.length === 0 || resourceNames.includes(name)),
  );
  return create(DiscoveryResponseSchema, {
    typeUrl,
    versionInfo: '1',
    nonce: `${typeUrl}-${round}-${resourceNames.length}`,
    resources: requested.map(({ schema, message }) => anyPack(schema, message)),
  });
}
