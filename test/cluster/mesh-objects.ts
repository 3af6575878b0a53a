/** The content of a mesh in a cluster: CRDs, and objects written like users, controllers and kubelets do. */
import { writeFileSync } from 'node:fs';
import {
  type ApiResource,
  customResourceDefinitions,
  resourceOf,
} from '../../src/discovery/kubernetes/api-resource.ts';
import { type KindName, kinds } from '../../src/model/kinds/index.ts';
import { resourceDefinitions } from '../../src/model/schemas/resource-definition.ts';
import { eventually } from '../harness/eventually.ts';
import type { ApiServerAddress } from './api-server-process.ts';
import type { Cluster } from './cluster.ts';

const neverAborted = new AbortController().signal;

/** Kinds that need a CRD. */
export const customKinds = (Object.keys(kinds) as KindName[]).filter((kind) =>
  /istio\.io$|^gateway\./.test(kinds[kind].group),
);

/** Defines kinds without a schema, which accept any object. Resolves when the server serves them. */
export async function defineKinds(cluster: Cluster, kindNames: readonly KindName[] = customKinds): Promise<void> {
  await Promise.all(kindNames.map((kind) => cluster.apply(customResourceDefinitions, definitionOf(kind))));
  await eventually('all kinds are served', async () => {
    await Promise.all(kindNames.map((kind) => cluster.admin.list(resourceOf(kind), { limit: 1 }, neverAborted)));
    return true;
  });
}

/**
 * Defines chartpilot's kinds with the shipped schemas, and those of the Gateway API without a schema. Resolves when the server serves them.
 */
export async function defineShippedKinds(cluster: Cluster): Promise<void> {
  const definitions = resourceDefinitions();
  await Promise.all(definitions.map((definition) => cluster.apply(customResourceDefinitions, definition as never)));
  await defineKinds(
    cluster,
    customKinds.filter((kind) => !kinds[kind].group.endsWith('istio.io')),
  );
  await eventually('all kinds are served', async () => {
    for (const { spec } of definitions)
      await cluster.admin.list(resourceOf(spec.names.kind as KindName), { limit: 1 }, neverAborted);
    return true;
  });
}

export function definitionOf(kind: KindName, versions = kinds[kind].versions) {
  const { group, plural, scope, kind: name, writtenAs = name } = kinds[kind];
  const openSchema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  return {
    metadata: {
      name: `${plural}.${group}`,
      annotations: { 'api-approved.kubernetes.io': 'unapproved, of a test' },
    },
    spec: {
      ...{ group, scope, names: { plural, singular: writtenAs.toLowerCase(), kind: writtenAs } },
      versions: versions.map((version, index) => ({
        ...{ name: version, served: true, storage: index === 0, subresources: { status: {} } },
        schema: { openAPIV3Schema: { ...openSchema, properties: { spec: openSchema, status: openSchema } } },
      })),
    },
  };
}

/** Writes a kubeconfig of the cluster, by default with the administrator's token. */
export function writeKubeconfig(
  path: string,
  { address }: Pick<Cluster, 'address'>,
  token?: string,
  server?: string,
): void {
  writeFileSync(path, kubeconfigText(address, { ...(token && { token }), ...(server && { server }) }), { mode: 0o600 });
}

/** @param user credentials that extend or replace the administrator's token */
export function kubeconfigText(
  address: ApiServerAddress,
  { token = address.adminToken, server = address.url, user = {} as object } = {},
): string {
  const ca = Buffer.from(address.ca).toString('base64');
  return JSON.stringify({
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'test' },
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    clusters: [{ name: 'test', cluster: { server, 'certificate-authority-data': ca } }],
    users: [{ name: 'test', user: { token, ...user } }],
  });
}

export const of = {
  services: resourceOf('Service'),
  slices: resourceOf('EndpointSlice'),
  pods: resourceOf('Pod'),
  serviceEntries: resourceOf('ServiceEntry'),
  destinationRules: resourceOf('DestinationRule'),
  virtualServices: resourceOf('VirtualService'),
  policies: resourceOf('AuthorizationPolicy'),
  configMaps: resourceOf('ConfigMap'),
  secrets: resourceOf('Secret'),
  namespaces: resourceOf('Namespace'),
} satisfies Record<string, ApiResource>;

/** Writes a service with one slice of these addresses, all ready. */
export async function writeService(
  cluster: Cluster,
  name: string,
  addresses: readonly string[],
  port = 80,
  namespace = cluster.namespace,
): Promise<void> {
  const ports = [{ name: 'http', port, protocol: 'TCP' }];
  await cluster.apply(of.services, { metadata: { name, namespace }, spec: { selector: { app: name }, ports } });
  await writeSlice(cluster, name, addresses, port, { namespace });
}

export async function writeSlice(
  cluster: Cluster,
  service: string,
  addresses: readonly string[],
  port = 80,
  { ready = true, name = `${service}-1`, namespace = cluster.namespace } = {},
): Promise<void> {
  await cluster.apply(of.slices, {
    metadata: { name, namespace, labels: { 'kubernetes.io/service-name': service } },
    ...{ addressType: 'IPv4', ports: [{ name: 'http', port, protocol: 'TCP' }] },
    endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready } })),
  });
}

/** Routes all requests for a host to another service. */
export async function writeRoute(cluster: Cluster, host: string, to: string, name = host): Promise<void> {
  await cluster.apply(of.virtualServices, {
    metadata: { name },
    spec: { hosts: [host], http: [{ route: [{ destination: { host: to } }] }] },
  });
}
