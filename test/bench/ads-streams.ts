/** ADS streams that request types in the order of a sidecar (clusters, endpoints, listeners, routes) and acknowledge every response. */
import { fromBinary } from '@bufbuild/protobuf';
import { ClusterSchema } from '../../src/gen/envoy/config/cluster/v3/cluster_pb.ts';
import { AdsTestClient, type SotwStream, type TypeName, typeUrls } from '../ads-client.ts';
import { eventually } from '../harness/eventually.ts';

export class AdsStreams {
  readonly #clients: AdsTestClient[] = [];
  readonly #streams: SotwStream[] = [];

  /** Opens streams to a control plane on loopback, and waits until each has clusters, endpoints and listeners. */
  static async open(port: number, count: number): Promise<AdsStreams> {
    const streams = new AdsStreams();
    for (let n = 1; n <= count; n++) streams.#openOne(port, n);
    await streams.#waitForAll('clusters, endpoints and listeners for every stream', (stream) =>
      ['CDS', 'EDS', 'LDS'].every((type) =>
        stream.responses.some(({ typeUrl }) => typeUrl === typeUrls[type as TypeName]),
      ),
    );
    return streams;
  }

  /** Applies a change and waits until every stream has received a response of the type. */
  async pushChange(type: TypeName, change: () => void): Promise<void> {
    for (const { responses } of this.#streams) responses.length = 0;
    change();
    await this.#waitForAll(`a ${type} response on every stream`, ({ responses }) =>
      responses.some(({ typeUrl }) => typeUrl === typeUrls[type]),
    );
  }

  close(): void {
    for (const stream of this.#streams) stream.cancel();
    for (const client of this.#clients) client.close();
  }

  #openOne(port: number, n: number): void {
    const client = new AdsTestClient(port);
    const stream = client.sotw();
    this.#clients.push(client);
    this.#streams.push(stream);
    const endpointNames: string[] = [];
    stream.onResponse = ({ typeUrl, nonce, versionInfo, resources }) => {
      const names = typeUrl === typeUrls.EDS ? endpointNames : [];
      stream.send({ typeUrl, responseNonce: nonce, versionInfo, resourceNames: names });
      if (typeUrl !== typeUrls.CDS || endpointNames.length > 0) return;
      endpointNames.push(...resources.map(({ value }) => fromBinary(ClusterSchema, value)).flatMap(edsName));
      stream.send({ typeUrl: typeUrls.EDS, resourceNames: endpointNames });
    };
    const id = `sidecar~10.${n >> 16}.${(n >> 8) & 255}.${n & 255}~app-${n}.demo~demo.svc.cluster.local`;
    stream.send({ node: { id, cluster: 'app.demo' }, typeUrl: typeUrls.CDS });
    stream.send({ typeUrl: typeUrls.LDS });
  }

  async #waitForAll(description: string, isComplete: (stream: SotwStream) => boolean): Promise<void> {
    await eventually(description, () => this.#streams.every(isComplete), { deadlineMs: 120_000 });
  }
}

function edsName({
  name,
  clusterDiscoveryType,
  edsClusterConfig,
}: {
  name: string;
  clusterDiscoveryType: { case?: string | undefined; value?: unknown };
  edsClusterConfig?: { serviceName: string } | undefined;
}): string[] {
  const isEds = clusterDiscoveryType.case === 'type' && clusterDiscoveryType.value === 3;
  return isEds ? [edsClusterConfig?.serviceName || name] : [];
}
