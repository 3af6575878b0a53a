/** A golden case: a proxy and a mesh in YAML, and the generated resources. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type JsonValue, toJson } from '@bufbuild/protobuf';
import { parse, stringify } from 'yaml';
import { withCompleteApi } from '../../src/model/envoy-api/envoy-api.ts';
import type { Proxy } from '../../src/model/node/proxy.ts';
import { type ProxyShape, shapeOf } from '../../src/model/proxy/proxy-shape.ts';
import type { PushContext } from '../../src/model/push-context/push-context.ts';
import {
  buildClusters,
  buildEndpoints,
  buildExtensions,
  buildListeners,
  buildRoutes,
  type EnvoyResource,
} from '../../src/networking/index.ts';
import { extensionTypes } from '../../src/networking/messages/extension-types.ts';
import { type GivenNode, givenMesh, givenProxy } from '../fixtures/given-mesh.ts';

export const caseDirectory = join(import.meta.dirname, 'cases');

export type Section = 'clusters' | 'endpoints' | 'listeners' | 'routes' | 'extensions';

export interface GoldenCase {
  readonly name: string;
  readonly proxy: Proxy;
  readonly shape: ProxyShape;
  readonly push: PushContext;
  /** Sections in the golden file. All others are generated, too. */
  readonly show: readonly Section[];
}

/** The first YAML document of a case. The others are objects of the mesh. */
interface CaseHeader {
  readonly proxy: GivenNode;
  readonly meshConfig?: Readonly<Record<string, unknown>>;
  readonly show: readonly Section[];
}

export function caseNames(): readonly string[] {
  const suffix = '.in.yaml';
  return readdirSync(caseDirectory)
    .filter((file) => file.endsWith(suffix))
    .map((file) => file.slice(0, -suffix.length))
    .sort();
}

/** @param certificateDirectory replaces `/etc/certs` in the case, for an Envoy that reads the files */
export function readCase(name: string, certificateDirectory = '/etc/certs'): GoldenCase {
  const text = readFileSync(join(caseDirectory, `${name}.in.yaml`), 'utf8').replaceAll(
    '/etc/certs',
    certificateDirectory,
  );
  const end = text.indexOf('\n---\n');
  const header = parse(text.slice(0, end)) as CaseHeader;
  const { meshConfig } = header;
  const { context: push } = givenMesh(text.slice(end + 5), meshConfig ? { meshConfig: stringify(meshConfig) } : {});
  const proxy = givenProxy(header.proxy);
  return { name, show: header.show, push, proxy, shape: shapeOf(proxy, push) };
}

/** All resources of the case's proxy, including those that it requests by name. */
export function generate({ shape, push }: Pick<GoldenCase, 'shape' | 'push'>): Record<Section, EnvoyResource[]> {
  const clusters = buildClusters(shape, push);
  const listeners = buildListeners(shape, push);
  const edsNames = clusters.map(asJson).flatMap((json) => valuesOf(json, 'serviceName'));
  const routeNames = listeners.map(asJson).flatMap((json) => valuesOf(json, 'routeConfigName'));
  return {
    clusters,
    endpoints: buildEndpoints(shape, push, [...new Set(edsNames)]),
    listeners,
    routes: buildRoutes(shape, push, [...new Set(routeNames)]),
    extensions: buildExtensions(shape, push, [...new Set(listeners.map(asJson).flatMap(discoveredNames))]),
  };
}

export function asJson(resource: EnvoyResource): JsonValue {
  return toJson(resource.schema, resource.message, { registry: withCompleteApi(extensionTypes) });
}

/** Golden text of the case's sections. */
export function goldenText(golden: GoldenCase): string {
  const resources = generate(golden);
  const shownSections = Object.fromEntries(golden.show.map((section) => [section, resources[section].map(asJson)]));
  return `${JSON.stringify(shownSections, null, 1)}\n`;
}

/** Names of filters that are configured by ECDS. */
function discoveredNames(json: JsonValue): string[] {
  if (typeof json !== 'object' || json === null) return [];
  const discovered = !Array.isArray(json) && 'configDiscovery' in json ? [String(json.name)] : [];
  return [...discovered, ...Object.values(json).flatMap(discoveredNames)];
}

/** All strings under a key, at any depth. */
function valuesOf(json: JsonValue, key: string): string[] {
  if (typeof json !== 'object' || json === null) return [];
  return Object.entries(json).flatMap(([name, value]) =>
    name === key && typeof value === 'string' ? [value] : valuesOf(value, key),
  );
}
