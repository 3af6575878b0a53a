/**
 * Small meshes whose objects have the fields of their kinds: those of the golden cases, and of `worlds/` what these lack. A
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
import { atOnce } from '../../src/runtime/turns.ts';
import { createAuthority } from '../certs/authority.ts';
import { type GivenNode, givenMesh, givenProxy } from '../fixtures/given-mesh.ts';
import { generate } from '../networking/case.ts';

export interface World {
  readonly name: string;
  readonly proxy: GivenNode;
  readonly meshConfig: Readonly<Record<string, unknown>>;
  readonly features: Partial<Features>;
  readonly objects: readonly WorldObject[];
  /** `Kind path` of fields that this mesh is tried first for: few others have what they need. */
  readonly shows: readonly string[];
}

export interface WorldObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

/** Own worlds first: they are smaller. */
export function readWorlds(): readonly World[] {
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
    const { proxy = {}, meshConfig = {}, features = {}, shows = [] } = parse(text.slice(0, end)) as Partial<World>;
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
export interface AskedNames {
  readonly endpoints: readonly string[];
  readonly routes: readonly string[];
  readonly extensions: readonly string[];
}

export interface Output {
  readonly text: string;
  readonly asked: AskedNames;
}

/**
 * Everything that the proxy of a world is given, and what the control plane does with objects that are for no proxy.
 *
 * @param asked names that the proxy asks for; absent: those that its clusters and listeners have. To find them takes most of the time,
 *   and where they differ, clusters or listeners do.
 * @throws Error an object is not valid
 */
export function outputOf({ proxy: node, meshConfig, features, objects }: World, asked?: AskedNames): Output {
  const { context: push, configs } = givenMesh(objects.map((object) => JSON.stringify(object)).join('\n---\n'), {
    meshConfig: JSON.stringify(meshConfig),
    features,
  });
  const shape = shapeOf(givenProxy(node), push);
  const known = asked ?? namesAskedBy({ shape, push });
  const resources = [
    ...buildClusters(shape, push),
    ...buildEndpoints(shape, push, known.endpoints),
    ...buildListeners(shape, push),
    ...buildRoutes(shape, push, known.routes),
    ...buildExtensions(shape, push, known.extensions),
    ...buildNameTable(shape, push),
  ].map(({ name, bytes }) => `${name}\n${Buffer.from(bytes).toString('latin1')}`);
  const others = [
    ...registeredBy(configs),
    ...keysFetchedFor(configs),
    ...ingressesOf(configs, push),
    ...credentialsOf(configs),
    ...agentWith(meshConfig),
    ...controlPlaneWith(push),
  ];
  return { text: [...resources, ...others].join('\n'), asked: known };
}

function namesAskedBy(given: Parameters<typeof generate>[0]): AskedNames {
  const { endpoints, routes, extensions } = generate(given);
  const namesOf = (resources: readonly { readonly name: string }[]): string[] => resources.map(({ name }) => name);
  return { endpoints: namesOf(endpoints), routes: namesOf(routes), extensions: namesOf(extensions) };
}

/** The WorkloadEntry that each WorkloadGroup makes of a workload that registers itself. */
function registeredBy(configs: ConfigSet): readonly string[] {
  const claim: WorkloadClaim = {
    ...{ entry: 'shop/a', namespace: 'shop', name: 'a', group: 'web', serviceAccount: '' },
    ...{ address: '10.0.0.30', network: '', locality: '', labels: {}, isProbed: false },
  };
  return configs.WorkloadGroup.map(({ name, apiVersion, spec }) =>
    JSON.stringify(entryOf(claim, { name, apiVersion, uid: undefined, spec }, { controller: 'a', connectedAt: 'b' })),
  );
}

/** What Ingresses are translated to, and the addresses in their status. */
function ingressesOf(configs: ConfigSet, { mesh, domain }: PushContext): readonly string[] {
  if (configs.Ingress.length === 0) return [];
  const objects = [...translateIngresses(configs, mesh, { domain }).values()];
  return [
    ...objects.map(({ name, spec }) => JSON.stringify([name, spec])),
    JSON.stringify(ingressAddresses(configs, mesh, 'istio-system')),
  ];
}

/** What a gateway is sent of the certificates in Secrets and ConfigMaps. */
function credentialsOf({ Secret: secrets, ConfigMap: maps }: ConfigSet): readonly string[] {
  return [
    ...secrets.flatMap(({ name, spec }) => [name, serverCertificateOf(spec), trustedRootsOf(spec)]),
    ...maps.flatMap(({ name, spec }) => [name, trustedRootsOfConfigMap(spec)]),
  ].map((part) => JSON.stringify(part));
}

function keysFetchedFor(configs: ConfigSet): readonly string[] {
  const { sources } = atOnce(selectKeySources(configs.RequestAuthentication));
  return sources.map((source) => JSON.stringify(source));
}

/** What the control plane itself does by the mesh configuration: roots, sources of configuration, hosts that stay in their cluster. */
function controlPlaneWith({ mesh, services, domain }: PushContext): readonly string[] {
  const fetched: string[] = [];
  const { pools, ignored: passedOver } = rootsOfMesh(mesh, (url) => {
    fetched.push(url);
    return [];
  });
  const roots = [...pools].map(([trustDomain, all]) => [trustDomain, all.map(({ pem }) => pem)]);
  const { sources, ignored } = configSources({ configDir: '', registries: [], cluster: [] }, mesh);
  const connections = mesh.configSources
    .filter(({ address }) => address.startsWith('xds:'))
    .map(({ address, tlsSettings: tls }) =>
      resultOf(() => connectionTo(parseSourceAddress(address), { tls, tokenFile: '', ownIdentity: () => undefined })),
    );
  const local = new ClusterLocalHosts(mesh, domain);
  const localHosts = services.flatMap(({ hostname }) => (local.has(hostname) ? [hostname] : []));
  return [{ roots, passedOver, fetched }, { sources, ignored: [...ignored], connections }, localHosts].map((part) =>
    JSON.stringify(part),
  );
}

/** Result or error of a function that reads a file. */
function resultOf(read: () => unknown): unknown {
  try {
    return read();
  } catch (error) {
    return String(error);
  }
}

/** What an agent makes of the mesh's proxy configuration: the bootstrap and the command line of its Envoy, and its own settings. */
function agentWith({ defaultConfig }: World['meshConfig']): readonly string[] {
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
  // There the configuration lies as it is written.
  const { PROXY_CONFIG: _, ...metadata } = node.metadata;
  const { status, workloadProbe, dns, config } = options;
  const used = [
    resultOf(() =>
      findEnvoy({ env: {}, home: () => '/nowhere', ...(config.binaryPath && { binaryPath: config.binaryPath }) }),
    ),
    resultOf(() => bootstrapTemplate(config, {})),
    agentSettings({ binary: '/envoy', options } as Parameters<typeof agentSettings>[0]),
  ];
  return [{ ...node, metadata }, rest, envoyFlags(options), { status, workloadProbe, dns }, used].map((part) =>
    JSON.stringify(part),
  );
}
