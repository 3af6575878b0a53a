/**
 * Small meshes whose objects contain the fields of their kinds: the golden cases, and additional ones in `worlds/`. A
 * file has a header (proxy, mesh configuration, features) and the objects; `<authority>` stands for a certificate.
 */
import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { agentSettings } from '../../src/agent/agent-program.ts';
import { agentBootstrap } from '../../src/agent/bootstrap/agent-bootstrap.ts';
import { envoyFlags } from '../../src/agent/bootstrap/preparation.ts';
import { findEnvoy } from '../../src/agent/envoy/envoy-binary.ts';
import { bootstrapTemplate } from '../../src/agent/options/bootstrap-template.ts';
import { resolveProxyOptions } from '../../src/agent/options/proxy-options.ts';
import { rootsOfMesh } from '../../src/discovery/ca/mesh-roots.ts';
import { configSources } from '../../src/discovery/config/sources/config-sources.ts';
import { parseSourceAddress } from '../../src/discovery/config/xds/source-address.ts';
import { connectionTo } from '../../src/discovery/config/xds/source-credentials.ts';
import { selectKeySources } from '../../src/discovery/jwks/key-sources.ts';
import { entryOf } from '../../src/discovery/registration/group-entry.ts';
import type { WorkloadClaim } from '../../src/discovery/registration/workload-claim.ts';
import type { ConfigSet } from '../../src/model/config/config-set.ts';
import {
  serverCertificateOf,
  trustedRootsOf,
  trustedRootsOfConfigMap,
} from '../../src/model/kinds/kubernetes/credential.ts';
import { ClusterLocalHosts } from '../../src/model/mesh/cluster-local-hosts.ts';
import type { Features } from '../../src/model/mesh/features.ts';
import { shapeOf } from '../../src/model/proxy/proxy-shape.ts';
import type { PushContext } from '../../src/model/push-context/push-context.ts';
import { translateIngresses } from '../../src/model/translation/ingress.ts';
import { ingressAddresses } from '../../src/model/translation/ingress-addresses.ts';
import {
  buildClusters,
  buildEndpoints,
  buildExtensions,
  buildListeners,
  buildNameTable,
  buildRoutes,
} from '../../src/networking/index.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { runToEnd } from '../../src/runtime/turns.ts';
import { createAuthority } from '../certs/authority.ts';
import { type GivenNode, givenMesh, givenProxy } from '../fixtures/given-mesh.ts';
import { generate } from '../networking/case.ts';

export interface FieldWorld {
  readonly name: string;
  readonly proxy: GivenNode;
  readonly meshConfig: Readonly<Record<string, unknown>>;
  readonly features: Partial<Features>;
  readonly objects: readonly WorldObject[];
  /** `Kind path` of fields that are tried in this mesh first, because few others have the required objects. */
  readonly shows: readonly string[];
}

export interface WorldObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

/** The additional worlds come first, because they are smaller. */
export function readWorlds(): readonly FieldWorld[] {
  const files = [
    ...globSync('test/fields/worlds/*.yaml', { cwd: packageRoot() }).sort(),
    ...globSync('test/networking/cases/*.in.yaml', { cwd: packageRoot() }).sort(),
  ];
  const { certificate } = createAuthority();
  return files.map((file) => {
    const text = readFileSync(`${packageRoot()}/${file}`, 'utf8').replaceAll(
      '<authority>',
      JSON.stringify(certificate),
    );
    const end = text.indexOf('\n---\n');
    const { proxy = {}, meshConfig = {}, features = {}, shows = [] } = parse(text.slice(0, end)) as Partial<FieldWorld>;
    const objects = parseAllDocuments(text.slice(end + 5), { merge: true }).map(
      (document) => document.toJS() as WorldObject | null,
    );
    return {
      ...{ name: basename(file).replace(/(\.in)?\.yaml$/, ''), proxy, meshConfig, features, shows },
      objects: objects.filter((object) => object !== null),
    };
  });
}

/** Resources that the proxy of a world requests by name. */
export interface RequestedNames {
  readonly endpoints: readonly string[];
  readonly routes: readonly string[];
  readonly extensions: readonly string[];
}

export interface Output {
  readonly text: string;
  readonly requested: RequestedNames;
}

/**
 * All resources of the proxy of a world, and the control plane's results for objects that concern no proxy.
 *
 * @param requested - requested names; by default those in the proxy's clusters and listeners. Their computation takes most of
 * the time, and different names imply different clusters or listeners.
 * @throws Error if an object is invalid
 */
export function outputOf(
  { proxy: node, meshConfig, features, objects }: FieldWorld,
  requested?: RequestedNames,
): Output {
  const { context: push, configs } = givenMesh(objects.map((object) => JSON.stringify(object)).join('\n---\n'), {
    meshConfig: JSON.stringify(meshConfig),
    features,
  });
  const shape = shapeOf(givenProxy(node), push);
  const requestedNames = requested ?? namesRequestedBy({ shape, push });
  const resources = [
    ...buildClusters(shape, push),
    ...buildEndpoints(shape, push, requestedNames.endpoints),
    ...buildListeners(shape, push),
    ...buildRoutes(shape, push, requestedNames.routes),
    ...buildExtensions(shape, push, requestedNames.extensions),
    ...buildNameTable(shape, push),
  ].map(({ name, bytes }) => `${name}\n${Buffer.from(bytes).toString('latin1')}`);
  const otherOutputs = [
    ...registeredBy(configs),
    ...keysFetchedFor(configs),
    ...ingressesOf(configs, push),
    ...credentialsOf(configs),
    ...agentWith(meshConfig),
    ...controlPlaneWith(push),
  ];
  return { text: [...resources, ...otherOutputs].join('\n'), requested: requestedNames };
}

function namesRequestedBy(input: Parameters<typeof generate>[0]): RequestedNames {
  const { endpoints, routes, extensions } = generate(input);
  const namesOf = (resources: readonly { readonly name: string }[]): string[] => resources.map(({ name }) => name);
  return { endpoints: namesOf(endpoints), routes: namesOf(routes), extensions: namesOf(extensions) };
}

/** WorkloadEntries of self-registering workloads, one per WorkloadGroup. */
function registeredBy(configs: ConfigSet): readonly string[] {
  const claim: WorkloadClaim = {
    ...{ entry: 'shop/a', namespace: 'shop', name: 'a', group: 'web', serviceAccount: '' },
    ...{ address: '10.0.0.30', network: '', locality: '', labels: {}, isProbed: false },
  };
  return configs.WorkloadGroup.map(({ name, apiVersion, spec }) =>
    JSON.stringify(entryOf(claim, { name, apiVersion, uid: undefined, spec }, { controller: 'a', connectedAt: 'b' })),
  );
}

/** Translated Ingresses, and the addresses in their status. */
function ingressesOf(configs: ConfigSet, { mesh, domain }: PushContext): readonly string[] {
  if (configs.Ingress.length === 0) return [];
  const objects = [...translateIngresses(configs, mesh, { domain }).values()];
  return [
    ...objects.map(({ name, spec }) => JSON.stringify([name, spec])),
    JSON.stringify(ingressAddresses(configs, mesh, 'istio-system')),
  ];
}

/** Certificates of Secrets and ConfigMaps that a gateway receives. */
function credentialsOf({ Secret: secrets, ConfigMap: maps }: ConfigSet): readonly string[] {
  return [
    ...secrets.flatMap(({ name, spec }) => [name, serverCertificateOf(spec), trustedRootsOf(spec)]),
    ...maps.flatMap(({ name, spec }) => [name, trustedRootsOfConfigMap(spec)]),
  ].map((value) => JSON.stringify(value));
}

function keysFetchedFor(configs: ConfigSet): readonly string[] {
  const { sources } = runToEnd(selectKeySources(configs.RequestAuthentication));
  return sources.map((source) => JSON.stringify(source));
}

/** Effects of the mesh configuration on the control plane: roots, configuration sources, and cluster-local hosts. */
function controlPlaneWith({ mesh, services, domain }: PushContext): readonly string[] {
  const fetchedUrls: string[] = [];
  const { pools, ignoredRoots: passedOver } = rootsOfMesh(mesh, (url) => {
    fetchedUrls.push(url);
    return [];
  });
  const roots = [...pools].map(([trustDomain, all]) => [trustDomain, all.map(({ pem }) => pem)]);
  const { sources, ignoredAddresses } = configSources({ configDir: '', registries: [], cluster: [] }, mesh);
  const connections = mesh.configSources
    .filter(({ address }) => address.startsWith('xds:'))
    .map(({ address, tlsSettings: tls }) =>
      resultOf(() => connectionTo(parseSourceAddress(address), { tls, tokenFile: '', ownIdentity: () => undefined })),
    );
  const local = new ClusterLocalHosts(mesh, domain);
  const localHosts = services.flatMap(({ hostname }) => (local.has(hostname) ? [hostname] : []));
  return [
    { roots, passedOver, fetched: fetchedUrls },
    { sources, ignored: [...ignoredAddresses], connections },
    localHosts,
  ].map((value) => JSON.stringify(value));
}

function resultOf(read: () => unknown): unknown {
  try {
    return read();
  } catch (error) {
    return String(error);
  }
}

/**
 * Effects of the proxy configuration on an agent: the bootstrap and command line of Envoy, and the agent's settings.
 */
function agentWith({ defaultConfig }: FieldWorld['meshConfig']): readonly string[] {
  if (defaultConfig === undefined) return [];
  const options = resolveProxyOptions({
    role: 'sidecar',
    flags: { instanceIPs: '10.1.2.3' },
    env: { PROXY_CONFIG: JSON.stringify(defaultConfig), POD_NAME: 'a', POD_NAMESPACE: 'shop' },
    directory: '/nowhere',
    assumesMounts: true,
  });
  const order = { adminPort: options.config.proxyAdminPort, run: { epoch: 0, baseId: 0 }, hasCredentialServer: false };
  const { bootstrap } = agentBootstrap(options, order);
  const { node, ...rest } = bootstrap as { node: { metadata: Record<string, unknown> } };
  // The metadata contain the proxy configuration as written.
  const { PROXY_CONFIG: _, ...metadata } = node.metadata;
  const { status, workloadProbe, dns, config } = options;
  const usedValues = [
    resultOf(() =>
      findEnvoy({ env: {}, home: () => '/nowhere', ...(config.binaryPath && { binaryPath: config.binaryPath }) }),
    ),
    resultOf(() => bootstrapTemplate(config, {})),
    agentSettings({ binary: '/envoy', options } as Parameters<typeof agentSettings>[0]),
  ];
  return [{ ...node, metadata }, rest, envoyFlags(options), { status, workloadProbe, dns }, usedValues].map((value) =>
    JSON.stringify(value),
  );
}
