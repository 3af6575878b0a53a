/** For tests: a mesh from its YAML, as the control plane would see it. Throws when an object is not valid. */
import * as E from 'fp-ts/lib/Either.js';
import { buildPushContext, type ConfigSet, configSetOf, type PreviousContext } from './build-push-context.ts';
import type { Config } from './config.ts';
import { type ConfigFile, readConfigFile } from './config-file.ts';
import { defaultFeatures, type Features } from './features.ts';
import { translateGatewayApi } from './gateway-api/translate.ts';
import { readMeshConfig } from './mesh-config.decode.ts';
import type { MeshConfig } from './mesh-config.ts';
import { parseNode } from './parse-node.ts';
import { problemText } from './problem.ts';
import type { Proxy } from './proxy.ts';
import { type ProxyShape, shapeOf } from './proxy-shape.ts';
import type { PushContext } from './push-context.ts';
import { buildServiceRegistry, type ServiceRegistry } from './service-registry.ts';

export interface GivenMesh {
  readonly file: ConfigFile;
  readonly configs: ConfigSet;
  readonly registry: ServiceRegistry;
  readonly context: PushContext;
}

export interface GivenOptions {
  /** YAML of a mesh configuration. */
  readonly meshConfig?: string;
  /** Services are those of a Kubernetes: true when absent. */
  readonly kubernetes?: boolean;
  /** What the environment says; the rest is as without any variable. */
  readonly features?: Partial<Features>;
  /** The mesh before; what did not change is shared with it. */
  readonly previous?: GivenMesh & { readonly changed?: PreviousContext['changed'] };
}

/** Objects are as old as their place: each a second younger than the one before. */
export function givenMesh(yaml: string, options: GivenOptions = {}): GivenMesh {
  const { previous } = options;
  const file = readConfigFile('given.yaml', yaml, {
    creationTimestamp: 0,
    ...(previous && { previous: previous.file }),
  });
  const errors = file.problems.filter((problem) => problem.severity === 'error');
  if (errors.length > 0) throw new Error(errors.map(problemText).join('\n'));
  const mesh =
    options.meshConfig === undefined
      ? (previous?.context.mesh ?? givenMeshConfig(''))
      : givenMeshConfig(options.meshConfig);
  const configs = withGatewayApi(file.configs.map(agedByLine));
  const registry = buildServiceRegistry(
    configs,
    registryOptionsOf(mesh),
    mesh === previous?.context.mesh ? previous.registry : undefined,
  );
  const { kubernetes = true } = options;
  const features = { ...defaultFeatures, ...options.features };
  const about = { version: '2026-01-01T00:00:00Z/1', mesh, domain: 'cluster.local', kubernetes, features };
  const input = { ...about, configs, ...registry };
  const changed = previous?.changed;
  const context = buildPushContext(input, previous && changed && { context: previous.context, changed });
  return { file, configs, registry, context };
}

/** With what is made of the Gateway API's objects. */
function withGatewayApi(written: readonly Config[]): ConfigSet {
  const set = configSetOf(written);
  const { objects } = translateGatewayApi(set, 'cluster.local');
  return objects.size === 0 ? set : configSetOf([...written, ...objects.values()]);
}

/** Kept, so that the same object stays the same from one mesh to the next. */
const aged = new WeakMap<Config, Config>();

function agedByLine(config: Config): Config {
  if (config.creationTimestamp > 0) return config;
  const older = aged.get(config) ?? { ...config, creationTimestamp: (config.source?.line ?? 0) * 1000 };
  aged.set(config, older);
  return older;
}

function registryOptionsOf({ trustDomain, defaultServiceExportTo, discoverySelectors }: MeshConfig) {
  return { trustDomain, defaultServiceExportTo, discoverySelectors };
}

export function givenMeshConfig(yaml: string): MeshConfig {
  const read = readMeshConfig('mesh.yaml', yaml);
  if (E.isLeft(read)) throw new Error(read.left.map(problemText).join('\n'));
  return read.right.mesh;
}

export interface GivenNode {
  readonly type?: 'sidecar' | 'router';
  readonly ip?: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

export function givenProxy(node: GivenNode = {}): Proxy {
  const { type = 'sidecar', ip = '10.9.9.9', namespace = 'default', labels = {}, metadata = {} } = node;
  const parsed = parseNode({
    id: `${type}~${ip}~web-0.${namespace}~${namespace}.svc.cluster.local`,
    cluster: `web.${namespace}`,
    metadata: { NAMESPACE: namespace, LABELS: labels, ...metadata },
  });
  if (E.isLeft(parsed)) throw new Error(parsed.left);
  return parsed.right;
}

/** @param context left out: one in which its workload serves nothing, and no Sidecar object holds for it. */
export function givenShape(node: GivenNode = {}, context: PushContext = nothing()): ProxyShape {
  return shapeOf(givenProxy(node), context);
}

function nothing(): PushContext {
  return givenMesh('').context;
}
