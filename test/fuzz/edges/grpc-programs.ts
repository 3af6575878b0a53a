/**
 * Proxyless gRPC programs that connect to a control plane in this process, directly and through the agent's xDS proxy:
 * odd nodes, names of foreign, missing or huge resources, and many streams.
 */
import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { AdsTestClient, type SotwStream, typeUrls } from '../../ads-client.ts';
import { ControlPlane } from '../../harness/control-plane.ts';
import { eventually } from '../../harness/eventually.ts';
import { type RunningXdsProxy, startXdsProxy } from '../../harness/xds-proxy.ts';
import type { Draw } from '../../random-config/draw.ts';
import { abbreviate, type FuzzEdge, type FuzzSubject, type SubjectMaker } from '../edge.ts';
import { oddText } from '../grammar/breaking-words.ts';

export const grpcProgramsMaker: SubjectMaker = {
  program: 'pilot-discovery',
  name: 'gRPC programs',
  edges: ['grpc-requests', 'grpc-streams'],
  batch: 12,
  open: () => GrpcProgramsSubject.start(),
};

const host = 'echo.shop.svc.cluster.local';
const cluster = `outbound|7070||${host}`;
/** A service that its namespace does not export, and the address of its endpoint, which no request contains. */
const privateHost = 'hidden.bank.svc.cluster.local';
const privateAddress = '10.9.8.7';
const behaved = {
  id: 'sidecar~127.0.0.1~web-0.shop~shop.svc.cluster.local',
  metadata: { GENERATOR: 'grpc', NAMESPACE: 'shop' },
};

/**
 * Expected status codes: OK, CANCELLED, INVALID_ARGUMENT, PERMISSION_DENIED, RESOURCE_EXHAUSTED, UNAVAILABLE,
 * UNAUTHENTICATED.
 */
const expectedCodes: ReadonlySet<number> = new Set([0, 1, 3, 7, 8, 14, 16]);
const maxResidentMiB = 1_000;
const settleMs = 30_000;
/** Time limit for a response, because many odd requests have none. */
const maxResponseMs = 150;

const clusterNames = [
  ...[cluster, `outbound|7070|v1|${host}`, `outbound|7071||${host}`, `outbound|7070||${privateHost}`],
  ...['inbound|7070||', 'BlackHoleCluster'],
];
const listenerNames = [
  ...[`${host}:7070`, 'echo:7070', 'echo.shop', 'echo', `${privateHost}:7070`, 'hidden.bank:7070', 'hidden'],
  ...['xds.istio.io/grpc/lds/inbound/127.0.0.1:7070', 'xds.istio.io/grpc/lds/inbound/[::]:7070'],
  ...['xds.istio.io/grpc/lds/inbound/10.9.8.6:7070', 'xds.istio.io/grpc/lds/inbound/0.0.0.0:99999'],
  ...['virtualInbound', '0.0.0.0_7070'],
];
const knownNames = [...clusterNames, ...listenerNames, '*', 'http.7070', '__proto__'];

const ids = [
  behaved.id,
  'sidecar~::1~web-0.shop~shop.svc.cluster.local',
  `sidecar~127.0.0.1~web-0.shop~${'a.'.repeat(200)}shop`,
  'router~127.0.0.1~web-0.shop~shop.svc.cluster.local',
  'ztunnel~127.0.0.1~web-0.shop~shop.svc.cluster.local',
  'sidecar~127.0.0.1~web-0.shop~',
  '~~~',
];

function serviceEntry(name: string, namespace: string, address: string, exportTo: readonly string[]): string {
  return `${JSON.stringify({
    ...{ apiVersion: 'networking.istio.io/v1', kind: 'ServiceEntry', metadata: { name, namespace } },
    spec: {
      ...{
        hosts: [`${name}.${namespace}.svc.cluster.local`],
        location: 'MESH_INTERNAL',
        resolution: 'STATIC',
        exportTo,
      },
      ports: [{ number: 7070, name: 'grpc', protocol: 'GRPC' }],
      endpoints: [{ address }],
    },
  })}\n---\n`;
}

class GrpcProgramsSubject implements FuzzSubject {
  readonly edges: readonly FuzzEdge[];
  readonly #plane: ControlPlane;
  readonly #proxy: RunningXdsProxy;

  private constructor(plane: ControlPlane, proxy: RunningXdsProxy) {
    this.#plane = plane;
    this.#proxy = proxy;
    const program = 'pilot-discovery';
    this.edges = [
      { name: 'grpc-requests', program, attack: (draw) => this.#session(draw) },
      { name: 'grpc-streams', program, attack: (draw) => this.#streams(draw) },
    ];
  }

  static async start(): Promise<GrpcProgramsSubject> {
    const services = [
      serviceEntry('echo', 'shop', '127.0.0.1', ['*']),
      serviceEntry('hidden', 'bank', privateAddress, ['.']),
    ];
    const plane = await ControlPlane.serving({}, { 'services.yaml': services.join('') });
    return new GrpcProgramsSubject(
      plane,
      await startXdsProxy(`127.0.0.1:${plane.port('ads.listening')}`, { proxyless: true }),
    );
  }

  /** Connects through the agent, or directly. */
  #client(throughAgent: boolean): AdsTestClient {
    return new AdsTestClient(throughAgent ? `unix:${this.#proxy.socket}` : this.#plane.port('ads.listening'));
  }

  /** One program that requests odd resources with an odd node. */
  async #session(draw: Draw): Promise<string> {
    const throughAgent = draw.chance(0.5);
    const client = this.#client(throughAgent);
    const stream = client.sotw();
    const requested = new Set<string>();
    const node = oddNode(draw);
    const thrown = [JSON.stringify(node)];
    try {
      for (let request = 0, count = draw.int(1, 8); request < count; request++) {
        const typeUrl = draw.pick(Object.values(typeUrls));
        const resourceNames = oddNames(draw, typeUrl);
        const last = stream.responses.findLast((one) => one.typeUrl === typeUrl);
        requested.add(typeUrl);
        stream.send({
          ...(request === 0 && { node }),
          ...{ typeUrl, resourceNames, responseNonce: draw.chance(0.8) ? (last?.nonce ?? '') : 'odd' },
          ...(draw.chance(0.2) && { errorDetail: { code: 3, message: oddText(draw).toWellFormed() } }),
        });
        thrown.push(`${typeUrl.slice(-12)} ${abbreviate(JSON.stringify(resourceNames))}`);
        await (draw.chance(0.5) ? responded(stream) : waitUntilSettled(stream, draw.int(0, 10)));
      }
      judgeResponses(stream, requested, node.metadata.NAMESPACE === 'bank');
    } finally {
      stream.cancel();
      client.close();
    }
    const { code, details } = await stream.ended;
    if (!expectedCodes.has(code)) throw new Error(`the stream ended with ${code}, ${details}`);
    return thrown.join(' ');
  }

  /** Opens more streams of one program than the agent serves. */
  async #streams(draw: Draw): Promise<string> {
    const client = this.#client(true);
    const count = draw.int(1, 80);
    const streams = Array.from({ length: count }, () => client.sotw());
    for (const stream of streams) {
      if (draw.chance(0.9)) {
        stream.send({ node: oddNode(draw), typeUrl: typeUrls.LDS, resourceNames: oddNames(draw, typeUrls.LDS) });
      }
      if (draw.chance(0.1)) stream.stopReading();
      if (draw.chance(0.2)) stream.halfClose();
      if (draw.chance(0.2)) stream.cancel();
    }
    await waitUntilSettled(streams[0]!, draw.int(0, 60));
    for (const stream of streams) stream.cancel();
    client.close();
    return `${count} streams`;
  }

  /** Checks that a well-behaved program receives its listener and its endpoints, both through the agent and directly. */
  async findProblems(): Promise<string[]> {
    const problems: string[] = [];
    for (const throughAgent of [false, true]) {
      const accessPath = throughAgent ? 'through the agent' : 'directly';
      await eventually(`a program is served ${accessPath}`, () => this.#isServed(throughAgent), {
        deadlineMs: settleMs,
      }).catch((error: Error) => problems.push(error.message));
    }
    const failures = this.#plane.troubles().filter((line) => /\terror\t/.test(line));
    problems.push(...failures.slice(0, 5));
    const residentMiB = process.memoryUsage().rss / 2 ** 20;
    if (residentMiB > maxResidentMiB) problems.push(`${Math.round(residentMiB)} MiB are resident`);
    return problems;
  }

  async #isServed(throughAgent: boolean): Promise<boolean> {
    const client = this.#client(throughAgent);
    const stream = client.sotw();
    try {
      stream.send({ node: behaved, typeUrl: typeUrls.LDS, resourceNames: [`${host}:7070`] });
      const listeners = await stream.next();
      stream.send({ typeUrl: typeUrls.EDS, resourceNames: [cluster] });
      const endpoints = await stream.next();
      return listeners.resources.length === 1 && endpoints.resources.length === 1;
    } finally {
      stream.cancel();
      client.close();
    }
  }

  async close(): Promise<void> {
    this.#proxy.stop();
    await this.#plane.stop();
  }
}

function oddNode(draw: Draw): { readonly id: string; readonly metadata: JsonObject } {
  const metadata: Record<string, JsonValue> = { ...behaved.metadata };
  if (draw.chance(0.3)) metadata.NAMESPACE = draw.pick(['bank', '', '*', '../bank', '__proto__']);
  if (draw.chance(0.3)) metadata[oddText(draw).toWellFormed().slice(0, 200)] = oddText(draw).toWellFormed();
  if (draw.chance(0.2))
    metadata.LABELS = draw.pick<JsonValue>([null, 7, [], { __proto__: 'x' }, { app: 'a'.repeat(10_000) }]);
  if (draw.chance(0.1)) metadata.GENERATOR = draw.pick(['api', 'GRPC', 'grpc ', '']);
  if (draw.chance(0.1)) metadata.padding = 'x'.repeat(draw.pick([1_000, 100_000, 1_000_000]));
  return { id: draw.chance(0.7) ? behaved.id : draw.pick(ids), metadata };
}

/** Draws mostly valid names of this type. */
function oddNames(draw: Draw, typeUrl: string): string[] {
  if (draw.chance(0.4)) return draw.some(typeUrl === typeUrls.LDS ? listenerNames : clusterNames, 1, 4);
  if (draw.chance(0.03)) return Array.from({ length: draw.pick([1_000, 10_001]) }, (_, index) => `s${index}.shop:7070`);
  return draw.list(0, 6, () => {
    if (draw.chance(0.7)) return draw.pick(knownNames);
    if (draw.chance(0.1)) return `${draw.pick(knownNames)}${'a'.repeat(draw.pick([300, 10_000, 500_000]))}`;
    return `${draw.pick(knownNames)}${oddText(draw).toWellFormed()}`;
  });
}

/** Checks that responses only have requested types and contain nothing of the unexported service. */
function judgeResponses(stream: SotwStream, requested: ReadonlySet<string>, isBankClient: boolean): void {
  for (const { typeUrl, resources } of stream.responses) {
    if (!requested.has(typeUrl)) throw new Error(`a response of type ${typeUrl}, which was not requested`);
    if (isBankClient) continue;
    const leaked = resources.find(({ value }) => Buffer.from(value).includes(privateAddress));
    if (leaked !== undefined) throw new Error(`a resource of type ${typeUrl} with the address ${privateAddress}`);
  }
}

/** Waits for a response, or until the stream cannot receive one. */
async function responded(stream: SotwStream): Promise<void> {
  const response = new Promise<void>((resolve) => {
    stream.onResponse = () => resolve();
  });
  await Promise.race([response, waitUntilSettled(stream, maxResponseMs)]);
}

async function waitUntilSettled(stream: SotwStream, ms: number): Promise<void> {
  await Promise.race([stream.ended, new Promise((resolve) => setTimeout(resolve, ms))]);
}
