/**
 * Configuration is independent of its storage: objects in a real API server give every proxy the same resources as those in a directory. Meshes are
 * the golden cases; with ROUTING_ACCEPTANCE=FOLDER also the cases of a routing acceptance, which then checks the served configuration
 * (ROUTING_ACCEPTANCE_SERVED=FOLDER).
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fromBinary, type JsonObject, type JsonValue, toJson } from '@bufbuild/protobuf';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { parseAllDocuments, stringify } from 'yaml';
import { ApiError } from '../../src/discovery/kubernetes/api-failure.ts';
import { apiVersionOf, resourceOf } from '../../src/discovery/kubernetes/api-resource.ts';
import type { KubernetesObject } from '../../src/discovery/kubernetes/api-server.ts';
import { ClusterSchema } from '../../src/gen/envoy/config/cluster/v3/cluster_pb.ts';
import { ClusterLoadAssignmentSchema } from '../../src/gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import { ListenerSchema } from '../../src/gen/envoy/config/listener/v3/listener_pb.ts';
import { RouteConfigurationSchema } from '../../src/gen/envoy/config/route/v3/route_pb.ts';
import { withCompleteApi } from '../../src/model/envoy-api/envoy-api.ts';
import { type KindName, kinds } from '../../src/model/kinds/index.ts';
import { extensionTypes } from '../../src/networking/messages/extension-types.ts';
import { typeUrls } from '../ads-client.ts';
import type { GivenNode } from '../fixtures/given-mesh.ts';
import { ControlPlane, stopControlPlanes } from '../harness/control-plane.ts';
import { sized } from '../harness/size-of-run.ts';
import { caseDirectory, caseNames } from '../networking/case.ts';
import type { ObjectToWrite } from './cluster.ts';
import { givenOwnServer } from './given-cluster.ts';
import { defineKinds, writeKubeconfig } from './mesh-objects.ts';

type Written = ObjectToWrite & { readonly apiVersion: string; readonly kind: string };
type NodeOfProxy = { readonly id: string; readonly metadata: JsonObject };

interface Mesh {
  readonly name: string;
  readonly objects: readonly Written[];
  readonly meshConfig: Readonly<Record<string, unknown>>;
  readonly node: NodeOfProxy;
  readonly env?: Readonly<Record<string, string>>;
}

/** Resources as JSON, by type and name. */
type Served = Record<'clusters' | 'endpoints' | 'listeners' | 'routes', JsonObject[]>;

const neverAborted = new AbortController().signal;
const registry = withCompleteApi(extensionTypes);
const acceptance = process.env.ROUTING_ACCEPTANCE ?? '';
const servedPath = process.env.ROUTING_ACCEPTANCE_SERVED ?? '';
/** Services request fixed addresses, which differ between the acceptance and the golden cases. */
const ownServer = givenOwnServer([
  `--service-cluster-ip-range=${acceptance === '' ? '10.0.0.0/8' : '1.2.0.0/16'},fd00:96::/112`,
]);
const { cluster } = ownServer;
const folder = mkdtempSync(join(tmpdir(), 'cp-same-'));
const kubeconfig = join(folder, 'config');
const registryKinds: ReadonlySet<KindName> = new Set(['Service', 'EndpointSlice', 'Pod', 'Node']);
/** The server manages objects of these kinds itself. */
const unwritten: ReadonlySet<KindName> = new Set(['Namespace', 'Endpoints']);

beforeAll(async () => {
  writeKubeconfig(kubeconfig, cluster);
  await defineKinds(cluster);
});
afterEach(async () => {
  await stopControlPlanes();
  await deleteAll();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const goldenMeshes = sized({
  quick: ['gateway-api', 'sidecar-listeners'],
  short: ['gateway-api', 'gateway-http', 'peer-strict', 'sidecar-alias', 'sidecar-listeners'],
  full: caseNames(),
});

it.each(goldenMeshes)(
  'proxies receive the same resources from cluster and files in the golden case %s',
  async (name) => {
    await expectSame(goldenMesh(name));
  },
);

const acceptanceCases = acceptance === '' ? [] : readdirSync(acceptance).filter((file) => file.endsWith('.json'));

it.skipIf(acceptance === '').each(acceptanceCases)(
  'proxies receive the same resources from cluster and files in the acceptance case %s',
  async (file) => {
    const { inCluster } = await expectSame(acceptanceMesh(join(acceptance, file)));
    if (servedPath === '') return;
    mkdirSync(servedPath, { recursive: true });
    writeFileSync(join(servedPath, `${basename(file, '.json')}.xds`), JSON.stringify(inCluster));
  },
);

async function expectSame(mesh: Mesh): Promise<{ inCluster: Served }> {
  await write(mesh.objects);
  /*
   * Kubernetes Services belong to a registry in either storage. Without Services no registry is configured, because the acceptance expects short
   * names within their namespace (`a.default`), not in the cluster domain (`a.default.svc.cluster.local`).
   */
  const registries = mesh.objects.some((object) => registryKinds.has(kindOf(object))) ? 'Kubernetes' : '';
  const meshConfig = stringify(mesh.meshConfig);
  const start = async (flags: object, files: Record<string, string>): Promise<Served> => {
    const prepare = ({ root }: { root: string }): void => writeFileSync(join(root, 'mesh'), meshConfig);
    const plane = new ControlPlane({ registries, ...flags }, files, prepare, mesh.env ?? {});
    await plane.ready();
    const servedResources = await servedTo(plane, mesh.node);
    expect(plane.deviations()).toEqual([]);
    return servedResources;
  };
  const inCluster = await start({ configDir: '', kubeconfig }, {});
  const inFiles = await start({}, await asFiles(registries === ''));
  expect(inCluster.listeners.length + inCluster.clusters.length).toBeGreaterThan(0);
  expect(inCluster).toEqual(inFiles);
  return { inCluster };
}

function goldenMesh(name: string): Mesh {
  const [header, ...objects] = documentsOf(readFileSync(join(caseDirectory, `${name}.in.yaml`), 'utf8'));
  const { proxy, meshConfig = {} } = header as { proxy: GivenNode; meshConfig?: Record<string, unknown> };
  const { type = 'sidecar', ip = '10.9.9.9', namespace = 'default', labels = {}, metadata = {} } = proxy;
  return {
    ...{ name, meshConfig, objects: objects as Written[] },
    node: {
      id: `${type}~${ip}~web-0.${namespace}~${namespace}.svc.cluster.local`,
      metadata: { NAMESPACE: namespace, LABELS: { ...labels }, ...(metadata as JsonObject) },
    },
  };
}

interface AcceptanceCase {
  readonly test: string;
  readonly config: string;
  readonly kube: string;
  readonly meshConfig?: Record<string, unknown>;
  readonly env?: Record<string, string>;
  readonly proxy: {
    readonly type: string;
    readonly ips: readonly string[];
    readonly id: string;
    readonly dnsDomain: string;
    readonly namespace: string;
    readonly labels?: JsonObject;
    readonly metadata?: JsonObject;
  };
}

function acceptanceMesh(file: string): Mesh {
  const {
    test,
    config,
    kube,
    meshConfig = {},
    env = {},
    proxy,
  } = JSON.parse(readFileSync(file, 'utf8')) as AcceptanceCase;
  const { type, ips, id, dnsDomain, namespace, labels = {}, metadata = {} } = proxy;
  return {
    ...{ name: test, meshConfig, env, objects: [config, kube].flatMap((text) => documentsOf(text) as Written[]) },
    node: {
      id: `${type}~${ips[0]}~${id}~${dnsDomain}`,
      metadata: { NAMESPACE: namespace, LABELS: labels, INSTANCE_IPS: ips.join(','), ...metadata },
    },
  };
}

function documentsOf(yaml: string): unknown[] {
  return parseAllDocuments(yaml)
    .map((document) => document.toJS() as unknown)
    .filter((value) => value !== null && value !== undefined);
}

/** Writes objects in the order of their age; the server sets creation times with a resolution of one second. */
async function write(objects: readonly Written[]): Promise<void> {
  const ageOf = ({ metadata: { creationTimestamp = '' } }: Written): string => String(creationTimestamp);
  let last: string | undefined;
  for (const object of objects.toSorted((a, b) => ageOf(a).localeCompare(ageOf(b)))) {
    if (last !== undefined && last !== ageOf(object)) await sleep(1_050);
    last = ageOf(object);
    const { creationTimestamp: _, ...writtenMetadata } = object.metadata;
    const metadata = { namespace: 'default', ...writtenMetadata } as ObjectToWrite['metadata'] & {
      readonly namespace: string;
    };
    const resource = resourceOf(kindOf(object), object.apiVersion.split('/').at(-1));
    await ensureNamespace(metadata.namespace);
    const { status, ...body } = withFamilies({ ...object, metadata });
    await cluster.apply(resource, body);
    if (status !== undefined) await cluster.apply(resource, { metadata, status }, 'status');
  }
}

/** The server requires two addresses to be declared. */
function withFamilies(object: ObjectToWrite): ObjectToWrite {
  const spec = object.spec as { clusterIPs?: readonly string[] } | undefined;
  return (spec?.clusterIPs?.length ?? 0) > 1
    ? { ...object, spec: { ...spec, ipFamilyPolicy: 'RequireDualStack' } }
    : object;
}

/** The kind Gateway exists in two API groups. */
function kindOf({ apiVersion, kind }: Written): KindName {
  const group = apiVersion.includes('/') ? apiVersion.split('/')[0] : '';
  const matchingKind = (Object.keys(kinds) as KindName[]).find(
    (name) => kinds[name].group === group && resourceOf(name).kind === kind,
  );
  if (matchingKind === undefined) throw new Error(`${apiVersion} ${kind} is not followed`);
  return matchingKind;
}

async function ensureNamespace(name: string): Promise<void> {
  try {
    await cluster.create(resourceOf('Namespace'), { metadata: { name } });
  } catch (error) {
    if (!(error instanceof ApiError) || error.failure.kind !== 'status' || error.failure.code !== 409) throw error;
  }
}

/** All objects of the server by kind, as stored, without trimming. */
async function listAllObjects(): Promise<Map<KindName, readonly KubernetesObject[]>> {
  const names = (Object.keys(kinds) as KindName[]).filter((kind) => kind !== 'Endpoints');
  const lists = names.map(async (kind) => {
    const list = await cluster.admin.request({ method: 'GET', resource: resourceOf(kind) }, neverAborted);
    return [kind, list.items as readonly KubernetesObject[]] as const;
  });
  return new Map(await Promise.all(lists));
}

/** @param isConfigOnly whether to omit the kinds of registries, because the server has its own Service */
async function asFiles(isConfigOnly: boolean): Promise<Record<string, string>> {
  const files: Record<string, string> = {};
  for (const [kind, objects] of await listAllObjects()) {
    if (isConfigOnly && registryKinds.has(kind)) continue;
    const apiVersion = apiVersionOf(resourceOf(kind));
    const texts = objects.map((object) => JSON.stringify({ ...object, apiVersion, kind: resourceOf(kind).kind }));
    if (texts.length > 0) files[`${kind}.yaml`] = texts.join('\n---\n');
  }
  return files;
}

async function deleteAll(): Promise<void> {
  for (const [kind, objects] of await listAllObjects()) {
    if (unwritten.has(kind)) continue;
    for (const { metadata } of objects) {
      if (metadata.namespace === 'default' && metadata.name === 'kubernetes') continue;
      const { name, namespace } = metadata;
      await cluster.admin.request(
        { method: 'DELETE', resource: resourceOf(kind), name, ...(namespace !== undefined && { namespace }) },
        neverAborted,
      );
    }
  }
}

const schemas = {
  CDS: ClusterSchema,
  EDS: ClusterLoadAssignmentSchema,
  LDS: ListenerSchema,
  RDS: RouteConfigurationSchema,
} as const;

/** Returns all resources that a proxy requests, like an Envoy. */
async function servedTo(plane: ControlPlane, node: NodeOfProxy): Promise<Served> {
  const stream = plane.client('ads.listening').sotw();
  const fetchResources = async (type: keyof typeof schemas, resourceNames: string[] = []): Promise<JsonObject[]> => {
    stream.send({ node, typeUrl: typeUrls[type], resourceNames });
    const { resources } = await stream.next();
    return resources
      .map(({ value }) => {
        const schema = schemas[type] as typeof ClusterSchema;
        return toJson(schema, fromBinary(schema, value), { registry }) as JsonObject;
      })
      .sort((a, b) => String(a.name ?? a.clusterName).localeCompare(String(b.name ?? b.clusterName)));
  };
  const clusters = await fetchResources('CDS');
  const edsNames = clusters.flatMap((json) => valuesOf(json, 'serviceName'));
  const endpoints = edsNames.length === 0 ? [] : await fetchResources('EDS', [...new Set(edsNames)]);
  const listeners = await fetchResources('LDS');
  const routeNames = listeners.flatMap((json) => valuesOf(json, 'routeConfigName'));
  const routes = routeNames.length === 0 ? [] : await fetchResources('RDS', [...new Set(routeNames)]);
  stream.cancel();
  return { clusters, endpoints, listeners, routes };
}

/** All strings with this key, at any depth. */
function valuesOf(json: JsonValue, key: string): string[] {
  if (typeof json !== 'object' || json === null) return [];
  return Object.entries(json).flatMap(([name, value]) =>
    name === key && typeof value === 'string' ? [value] : valuesOf(value, key),
  );
}
