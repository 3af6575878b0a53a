/** A real pilot-discovery: its HTTP ports, HTTP/2, xDS messages of both protocols, configuration files. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { debugPages } from '../../../src/discovery/monitor/debug/debug-endpoints.ts';
import {
  DeltaDiscoveryRequestSchema,
  DiscoveryRequestSchema,
} from '../../../src/gen/envoy/service/discovery/v3/discovery_pb.ts';
import { messageOf } from '../../../src/runtime/errors.ts';
import { packageRoot } from '../../../src/runtime/package-root.ts';
import { AdsTestClient, type DeltaStream, type ServiceName, type SotwStream, typeUrls } from '../../ads-client.ts';
import { eventually } from '../../harness/eventually.ts';
import { type DiscoveryProgram, Mesh } from '../../harness/mesh.ts';
import type { Draw } from '../../random-config/draw.ts';
import { abbreviate, type FuzzEdge, type FuzzSubject, type SubjectMaker } from '../edge.ts';
import { oddText } from '../grammar/breaking-words.ts';
import { httpRequest } from '../grammar/http.ts';
import { http2Bytes } from '../grammar/http2.ts';
import { randomMessage } from '../grammar/protobuf.ts';
import { randomYaml, yamlValues } from '../grammar/yaml.ts';
import { ProgramWatch } from './program-watch.ts';
import { throwBytes } from './throw-bytes.ts';

const behavedNode = {
  id: 'sidecar~127.0.0.1~behaved.demo~demo.svc.cluster.local',
  cluster: 'behaved',
  metadata: { NAMESPACE: 'demo', INTERCEPTION_MODE: 'NONE' },
};

const paths = [
  ...debugPages.map(({ path }) => `/debug/${path}`),
  ...[
    '/ready',
    '/metrics',
    '/version',
    '/healthz',
    '/debug',
    '/debug/',
    '/debug/pprof/',
    '/debug/pprof/goroutine',
    '/debug/trace',
    '/v1/registration',
    '/',
  ],
];

const oddFiles = ['odd.yaml', 'odd-too.yaml', 'odd.json'];

const knownTexts = {
  type_url: [
    ...Object.values(typeUrls),
    'type.googleapis.com/envoy.api.v2.Cluster',
    'istio.io/debug',
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    'x',
  ],
  resource_names: [
    '*',
    'outbound|80||sample.localhost',
    '80',
    'http.80',
    '0.0.0.0_80',
    'kubernetes://a',
    'file-cert:/a~/b',
    '__proto__',
    'default',
    'ROOTCA',
    'syncz',
    'config_dump',
  ],
  resource_names_subscribe: ['*', 'outbound|80||sample.localhost', '80', '__proto__', 'constructor'],
  resource_names_unsubscribe: ['*', 'outbound|80||sample.localhost', '__proto__'],
  id: [
    behavedNode.id,
    'router~10.0.0.1~a.b~b.svc.cluster.local',
    'sidecar~::1~a.b~b',
    'waypoint~1.1.1.1~a~b',
    'sidecar~~~',
  ],
  cluster: ['behaved', '__proto__'],
} as const;

export const discoveryMaker: SubjectMaker = {
  program: 'pilot-discovery',
  name: 'pilot-discovery',
  edges: ['discovery-http', 'discovery-http2', 'discovery-xds-bytes', 'discovery-xds', 'discovery-files'],
  batch: 20,
  open: () => DiscoverySubject.start(),
};

class DiscoverySubject implements FuzzSubject {
  readonly edges: readonly FuzzEdge[];
  readonly #mesh: Mesh;
  readonly #discovery: DiscoveryProgram;
  readonly #watch: ProgramWatch;
  readonly #documents = yamlValues(
    [join(packageRoot(), 'examples'), join(packageRoot(), 'test/networking/cases')],
    (name) => name.endsWith('.yaml'),
  );
  readonly #meshConfig: Buffer;
  #version = 0;

  private constructor(mesh: Mesh, discovery: DiscoveryProgram) {
    this.#mesh = mesh;
    this.#discovery = discovery;
    this.#meshConfig = readFileSync(mesh.directory.meshConfigFile);
    this.#watch = new ProgramWatch(discovery.program, { maxResidentMiB: 900, maxResponseMs: 20_000 });
    const program = 'pilot-discovery';
    this.edges = [
      { name: 'discovery-http', program, attack: (draw) => this.#http(draw) },
      { name: 'discovery-http2', program, attack: (draw) => this.#http2(draw) },
      { name: 'discovery-xds-bytes', program, attack: (draw) => this.#xdsBytes(draw) },
      { name: 'discovery-xds', program, attack: (draw) => this.#xds(draw) },
      { name: 'discovery-files', program, attack: (draw) => this.#file(draw) },
    ];
  }

  static async start(): Promise<DiscoverySubject> {
    const mesh = await Mesh.create({ sidecar: false });
    try {
      return new DiscoverySubject(mesh, await mesh.startDiscovery(['--traceLevel', 'standard']));
    } catch (error) {
      await mesh.stop();
      throw error;
    }
  }

  /** Checks that a well-behaved client receives clusters and, after the invalid files are removed, a change. */
  async findProblems(): Promise<string[]> {
    for (const name of oddFiles) rmSync(join(this.#mesh.directory.path, name), { force: true });
    writeFileSync(this.#mesh.directory.meshConfigFile, this.#meshConfig);
    const problems = await this.#watch.findProblems(`http://127.0.0.1:${this.#discovery.httpPort}/ready`);
    if (problems.length > 0) return problems;
    const client = new AdsTestClient(this.#mesh.xdsPort);
    try {
      return await this.#serves(client.sotw());
    } catch (error) {
      const lastWords = this.#discovery.program.lines.slice(-15).map((line) => line.slice(0, 300));
      return [this.#discovery.program.hopeless() ?? `a client that behaves: ${messageOf(error)}`, ...lastWords];
    } finally {
      client.close();
    }
  }

  async close(): Promise<void> {
    await this.#mesh.stop();
  }

  async #serves(stream: SotwStream): Promise<string[]> {
    stream.send({ node: behavedNode, typeUrl: typeUrls.CDS });
    const { nonce, versionInfo } = await stream.next();
    stream.send({ typeUrl: typeUrls.CDS, responseNonce: nonce, versionInfo });
    const host = `judge-${++this.#version}.example.com`;
    this.#write('judge.yaml', judgeEntry(host));
    await eventually(
      'the change reaches a client that behaves',
      () => stream.responses.some(({ resources }) => resources.some(({ value }) => Buffer.from(value).includes(host))),
      { deadlineMs: 30_000, hopeless: () => this.#discovery.program.hopeless() },
    );
    stream.cancel();
    return [];
  }

  #write(name: string, content: string | Buffer): void {
    writeFileSync(join(this.#mesh.directory.path, name), content);
  }

  async #http(draw: Draw): Promise<string> {
    const bytes = httpRequest(draw, { paths });
    const port = draw.chance(0.5) ? this.#discovery.httpPort : this.#discovery.monitoringPort;
    await throwBytes(port, bytes, draw);
    return abbreviate(bytes);
  }

  async #http2(draw: Draw): Promise<string> {
    const bytes = http2Bytes(draw);
    await throwBytes(this.#mesh.xdsPort, bytes, draw);
    return abbreviate(bytes);
  }

  /** Valid gRPC framing with invalid messages. */
  async #xdsBytes(draw: Draw): Promise<string> {
    const client = new AdsTestClient(this.#mesh.xdsPort);
    const isDelta = draw.chance(0.5);
    const stream = isDelta ? client.delta() : client.sotw();
    const messages = draw.list(1, 6, () =>
      randomMessage(draw, isDelta ? DeltaDiscoveryRequestSchema : DiscoveryRequestSchema, knownTexts),
    );
    for (const bytes of messages) {
      stream.sendRaw(bytes);
      if (draw.chance(0.3)) await sleep(draw.int(0, 10));
    }
    await waitUntilSettled(stream, draw);
    client.close();
    return `${isDelta ? 'delta' : 'state of the world'} ${messages.map((bytes) => abbreviate(bytes)).join(' ')}`;
  }

  /** A client with a valid node and invalid requests. */
  async #xds(draw: Draw): Promise<string> {
    const client = new AdsTestClient(this.#mesh.xdsPort);
    const service = draw.chance(0.8) ? 'ADS' : draw.pick<ServiceName>(['LDS', 'CDS', 'RDS', 'EDS', 'SDS']);
    const description = draw.chance(0.5)
      ? await sendSotw(client.sotw(service), draw)
      : await sendDelta(client.delta(service), draw);
    client.close();
    return `${service} ${description}`;
  }

  async #file(draw: Draw): Promise<string> {
    const name = draw.pick(oddFiles);
    if (draw.chance(0.1)) {
      rmSync(join(this.#mesh.directory.path, name), { force: true });
      return `no ${name}`;
    }
    const bytes = randomYaml(draw, this.#documents);
    if (draw.chance(0.1)) {
      writeFileSync(this.#mesh.directory.meshConfigFile, bytes);
      return `mesh configuration ${abbreviate(bytes, 600)}`;
    }
    this.#write(name, bytes);
    await sleep(draw.int(0, 150));
    return `${name} ${abbreviate(bytes, 600)}`;
  }
}

const nodeOf = (draw: Draw): object => ({
  ...behavedNode,
  id: draw.chance(0.8) ? behavedNode.id : draw.pick(knownTexts.id),
  metadata: draw.chance(0.7)
    ? behavedNode.metadata
    : { [oddText(draw).slice(0, 200)]: 'x', NAMESPACE: 'demo', LABELS: { [draw.pick(['__proto__', 'app'])]: 'a' } },
});

const typeOf = (draw: Draw): string =>
  draw.chance(0.6) ? draw.pick(Object.values(typeUrls)) : draw.pick(knownTexts.type_url);
const namesOf = (draw: Draw): string[] =>
  draw.list(0, draw.chance(0.05) ? 2_000 : 4, () =>
    draw.chance(0.6) ? draw.pick(knownTexts.resource_names) : wellFormed(oddText(draw)),
  );

/** Protobuf strings contain no lone surrogates; other attacks send those as bytes. */
const wellFormed = (text: string): string => text.toWellFormed();

/** Common fields of a request, which may refer to the last response. */
function commonFields(draw: Draw, last: { readonly typeUrl: string; readonly nonce: string } | undefined) {
  return {
    typeUrl: draw.chance(0.4) && last !== undefined ? last.typeUrl : typeOf(draw),
    responseNonce: draw.chance(0.6) ? (last?.nonce ?? '') : wellFormed(oddText(draw)),
    ...(draw.chance(0.2) && { errorDetail: { code: 3, message: wellFormed(oddText(draw)) } }),
    ...(draw.chance(0.1) && { node: nodeOf(draw) }),
  };
}

/** Runs a session that usually starts with a valid node, followed by odd requests. @returns description of the requests */
async function converse(stream: SotwStream | DeltaStream, draw: Draw, sendOne: () => string): Promise<string> {
  const all: string[] = [];
  if (draw.chance(0.9)) stream.send({ node: nodeOf(draw), typeUrl: typeUrls.CDS });
  for (let remaining = draw.int(1, 12); remaining > 0; remaining--) {
    if (draw.chance(0.6)) await sleep(draw.int(0, 12));
    all.push(sendOne());
  }
  await waitUntilSettled(stream, draw);
  return all.join(', ');
}

function sendSotw(stream: SotwStream, draw: Draw): Promise<string> {
  return converse(stream, draw, () => {
    const last = stream.responses.at(-1);
    const request = {
      ...commonFields(draw, last),
      resourceNames: namesOf(draw),
      versionInfo: draw.chance(0.5) ? (last?.versionInfo ?? '') : wellFormed(oddText(draw)),
    };
    stream.send(request);
    return `${request.typeUrl.slice(-20)}(${request.resourceNames.length}) ${abbreviate(request.responseNonce, 20)}`;
  });
}

function sendDelta(stream: DeltaStream, draw: Draw): Promise<string> {
  return converse(stream, draw, () => {
    const request = {
      ...commonFields(draw, stream.responses.at(-1)),
      resourceNamesSubscribe: namesOf(draw),
      resourceNamesUnsubscribe: namesOf(draw),
      initialResourceVersions: Object.fromEntries(draw.list(0, 3, () => [wellFormed(oddText(draw)), 'v'])),
    };
    stream.send(request);
    return `${request.typeUrl.slice(-20)}(+${request.resourceNamesSubscribe.length}) ${abbreviate(request.responseNonce, 20)}`;
  });
}

async function waitUntilSettled(stream: SotwStream | DeltaStream, draw: Draw): Promise<void> {
  if (draw.chance(0.2)) stream.stopReading();
  if (draw.chance(0.3)) stream.halfClose();
  await sleep(draw.int(1, 60));
  stream.cancel();
}

function judgeEntry(host: string): string {
  return `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: judge, namespace: demo}
spec:
  hosts: [${host}]
  resolution: STATIC
  ports: [{number: 8123, name: http, protocol: HTTP}]
  endpoints: [{address: 127.0.0.1}]
`;
}
