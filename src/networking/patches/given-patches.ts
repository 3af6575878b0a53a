/** For tests: a mesh of one web server and one database, with patches, and what its proxies get. */
import { type JsonValue, toJson } from '@bufbuild/protobuf';
import { withWholeApi } from '../../model/envoy-api.ts';
import { type GivenMesh, type GivenNode, givenMesh, givenShape } from '../../model/given-mesh.ts';
import type { EnvoyFilter } from '../../model/kinds/envoy-filter.ts';
import { extensionTypes } from '../extension-types.ts';
import { buildClusters, buildListeners, buildRoutes, patchStatus, type Resource } from '../index.ts';

const mesh = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: web, namespace: shop }
spec:
  hosts: [web.test]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{ number: 80, name: http, protocol: HTTP, targetPort: 8080 }]
  endpoints: [{ address: 10.1.0.1, labels: { v: one } }]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: db, namespace: shop }
spec:
  hosts: [db.test]
  addresses: [10.2.0.1]
  resolution: STATIC
  ports: [{ number: 5432, name: tcp, protocol: TCP }]
  endpoints: [{ address: 10.1.0.2 }]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: web, namespace: shop }
spec: { host: web.test, subsets: [{ name: one, labels: { v: one } }] }
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: { name: door, namespace: shop }
spec:
  selector: { app: door }
  servers: [{ port: { number: 8080, name: http-door, protocol: HTTP }, hosts: ["*"] }]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: web, namespace: shop }
spec:
  hosts: [web.test]
  gateways: [mesh, door]
  http:
    - { name: old, match: [{ uri: { prefix: /old } }], redirect: { uri: /new } }
    - { name: rest, route: [{ destination: { host: web.test } }] }
`;

export interface GivenFilter {
  readonly name?: string;
  readonly namespace?: string;
  readonly priority?: number;
  /** YAML in flow style, one for each patch. */
  readonly patches: readonly string[];
}

export function filterYaml({ name = 'filter', namespace = 'shop', priority = 0, patches }: GivenFilter): string {
  return `
---
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: { name: ${name}, namespace: ${namespace} }
spec:
  priority: ${priority}
  configPatches:
${patches.map((patch) => `    - ${patch}`).join('\n')}`;
}

/** A client, the web server itself, the gateway. */
export const nodes = {
  client: { namespace: 'shop', labels: { app: 'client' } },
  server: { namespace: 'shop', ip: '10.1.0.1', labels: { app: 'web' } },
  door: { type: 'router', namespace: 'shop', labels: { app: 'door' } },
} as const satisfies Record<string, GivenNode>;

export type Section = 'clusters' | 'listeners' | 'routes';

export class PatchedMesh {
  readonly mesh: GivenMesh;

  /** @param objects EnvoyFilters, or other objects as YAML that begins with `---` */
  constructor(...objects: readonly (GivenFilter | string)[]) {
    this.mesh = givenMesh(mesh + objects.map((one) => (typeof one === 'string' ? one : filterYaml(one))).join(''));
  }

  resources(section: Section, node: GivenNode): Resource[] {
    const { context } = this.mesh;
    const shape = givenShape(node, context);
    switch (section) {
      case 'clusters':
        return buildClusters(shape, context);
      case 'listeners':
        return buildListeners(shape, context);
      case 'routes':
        return buildRoutes(shape, context, shape.type === 'router' ? ['http.8080'] : ['80']);
    }
  }

  /** As Envoy would show it. */
  json(section: Section, node: GivenNode): JsonObject[] {
    return this.resources(section, node).map(
      ({ schema, message }) => toJson(schema, message, { registry: withWholeApi(extensionTypes) }) as JsonObject,
    );
  }

  one(section: Section, node: GivenNode, name: string): JsonObject {
    const found = this.json(section, node).find((one) => one.name === name);
    if (found === undefined) throw new Error(`no ${name} in ${section}`);
    return found;
  }

  /** What is said of the patches of an object. */
  problems(name = 'filter'): readonly (string | undefined)[] {
    const { spec } = this.mesh.configs.EnvoyFilter.find((filter) => filter.name === name)! as { spec: EnvoyFilter };
    return spec.configPatches.map((patch) => patchStatus(patch).problem);
  }
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into JSON that they know
export type JsonObject = { [key: string]: any } & { readonly name: string };

/** Names of the HTTP filters of a chain. */
export function httpFilterNames(chain: JsonObject): readonly string[] {
  return chain.filters.flatMap((filter: { typedConfig: { httpFilters?: { name: string }[] } }) =>
    (filter.typedConfig.httpFilters ?? []).map(({ name }) => name),
  );
}

export type { JsonValue };
