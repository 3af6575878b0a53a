import { anyUnpack, type StringValue, StringValueSchema } from '@bufbuild/protobuf/wkt';
import { describe, expect, it } from 'vitest';
import { type GivenNode, givenMesh, givenShape } from '../../../test/fixtures/given-mesh.ts';
import type { TypedExtensionConfig } from '../../gen/envoy/config/core/v3/extension_pb.ts';
import { type RBAC, RBACSchema } from '../../gen/envoy/extensions/filters/http/rbac/v3/rbac_pb.ts';
import { type Wasm, WasmSchema } from '../../gen/envoy/extensions/filters/http/wasm/v3/wasm_pb.ts';
import type { ConfigKey } from '../../model/config/config.ts';
import type { Memory } from '../inputs/generator-memory.ts';
import { buildWasmPlugins, fetchedPlugin } from './build.ts';

const hash = '2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae';

function buildPlugin(spec: string, extraSpec = '', node: GivenNode = {}) {
  const { context } = givenMesh(`
apiVersion: extensions.istio.io/v1alpha1
kind: WasmPlugin
metadata: { name: one.two, namespace: shop }
spec: ${spec}
${extraSpec}`);
  const shape = givenShape({ namespace: 'shop', labels: { app: 'web' }, ...node }, context);
  const resources = buildWasmPlugins(shape, context, ['shop.one.two', 'shop.other', 'nonsense']);
  const [plugin] = context.policiesFor(shape).wasmPlugins;
  const fetchedConfig = plugin && fetchedPlugin(plugin, shape, context);
  // The listener contains plugins with remote code. Other plugins are requested by name.
  expect(resources.map(({ name }) => name)).toEqual(plugin === undefined || fetchedConfig ? [] : ['shop.one.two']);
  const packedConfig = fetchedConfig ?? (resources[0]?.message as TypedExtensionConfig | undefined)?.typedConfig;
  return {
    wasm: packedConfig && (anyUnpack(packedConfig, WasmSchema) as Wasm | undefined),
    rbac: packedConfig && (anyUnpack(packedConfig, RBACSchema) as RBAC | undefined),
  };
}

function codeOf(wasm: Wasm | undefined) {
  const vm = wasm?.config?.vm;
  return vm?.case === 'vmConfig' ? vm.value.code?.specifier : undefined;
}

const modules = `---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: modules, namespace: shop }
spec:
  hosts: [modules.test]
  resolution: STATIC
  ports: [{ number: 8080, name: http, protocol: HTTP }]
  endpoints: [{ address: 10.0.0.1 }]
`;

describe('configuration of a WasmPlugin', () => {
  it('a plugin contains code from a file, with its configuration and environment', () => {
    const { wasm } = buildPlugin(
      '{ url: "file:///opt/a%20b.wasm", pluginName: root, failStrategy: FAIL_OPEN, pluginConfig: { a: 1 }, ' +
        'vmConfig: { env: [{ name: A, value: b }, { name: HOME, valueFrom: HOST }] } }',
    );
    expect(codeOf(wasm)).toMatchObject({
      case: 'local',
      value: { specifier: { case: 'filename', value: '/opt/a b.wasm' } },
    });
    expect(wasm?.config).toMatchObject({ name: 'shop.one.two', rootId: 'root', failOpen: true });
    const settings = anyUnpack(wasm!.config!.configuration!, StringValueSchema) as StringValue;
    expect(JSON.parse(settings.value)).toEqual({ a: 1 });
    expect(wasm?.config?.vm.value).toMatchObject({
      runtime: 'envoy.wasm.runtime.v8',
      environmentVariables: { hostEnvKeys: ['HOME'], keyValues: { A: 'b' } },
    });
  });

  it('a plugin contains the URL and hash of code that Envoy fetches from a service in the mesh', () => {
    const { wasm } = buildPlugin(`{ url: "http://modules.test:8080/a.wasm", sha256: ${hash} }`, modules);
    expect(codeOf(wasm)).toMatchObject({
      case: 'remote',
      value: {
        sha256: hash,
        httpUri: { uri: 'http://modules.test:8080/a.wasm', httpUpstreamType: { value: 'outbound|8080||modules.test' } },
      },
    });
  });

  it("an agent that fetches modules receives a plugin's URL over ECDS", () => {
    const agent: GivenNode = { metadata: { WASM_FETCH: 'true' } };
    for (const sha256 of ['', `, sha256: ${hash}`]) {
      const { wasm } = buildPlugin(`{ url: "https://outside.test/a.wasm"${sha256} }`, '', agent);
      expect(codeOf(wasm)).toMatchObject({
        case: 'remote',
        value: {
          sha256: sha256 === '' ? '' : hash,
          httpUri: { uri: 'https://outside.test/a.wasm', httpUpstreamType: { value: '_' } },
        },
      });
      expect(buildPlugin(`{ url: "https://outside.test/a.wasm"${sha256} }`).rbac).toBeDefined();
    }
    // Envoy itself fetches code from a service of the mesh.
    const fromMesh = buildPlugin(`{ url: "http://modules.test:8080/a.wasm", sha256: ${hash} }`, modules, agent);
    expect(codeOf(fromMesh.wasm)).toMatchObject({
      value: { httpUri: { httpUpstreamType: { value: 'outbound|8080||modules.test' } } },
    });
  });

  it("an agent receives the pull policy, the plugin's version, and the pull secret from its own namespace", () => {
    const secret = '{"auths":{"example.com":{"auth":"cm9ib3Q6c2VjcmV0"}}}';
    const secrets = (namespace: string, key = '.dockerconfigjson') => `---
apiVersion: v1
kind: Secret
metadata: { name: pull, namespace: ${namespace} }
type: kubernetes.io/dockerconfigjson
stringData: { "${key}": '${secret}' }
`;
    const variablesOf = (spec: string, objects: string, node: GivenNode = {}) => {
      const { wasm } = buildPlugin(spec, objects, { metadata: { WASM_FETCH: 'true' }, isOfNamespace: true, ...node });
      expect(codeOf(wasm)).toMatchObject({ value: { httpUri: { uri: 'oci://example.com/image:1' } } });
      const vm = wasm?.config?.vm;
      return vm?.case === 'vmConfig' ? (vm.value.environmentVariables?.keyValues ?? {}) : {};
    };
    const spec = (extraSpec: string): string => `{ url: example.com/image:1, imagePullSecret: pull${extraSpec} }`;
    const variables = variablesOf(spec(', imagePullPolicy: Always'), secrets('shop'));
    expect(variables).toMatchObject({
      ISTIO_META_WASM_IMAGE_PULL_SECRET: secret,
      ISTIO_META_WASM_IMAGE_PULL_POLICY: 'Always',
    });
    const version = 'ISTIO_META_WASM_PLUGIN_RESOURCE_VERSION';
    expect(variables[version]).toMatch(/^[0-9a-f]{16}$/);
    expect(variablesOf(spec(''), secrets('shop'))[version]).not.toBe(variables[version]);
    // The secret is not sent to a node without a verified namespace, nor if it is in another namespace or of another type.
    for (const [objects, node] of [
      [secrets('shop'), { isOfNamespace: false }],
      [secrets('other'), {}],
      [secrets('shop', 'password'), {}],
    ] as const) {
      expect(variablesOf(spec(''), objects, node)).toMatchObject({ ISTIO_META_WASM_IMAGE_PULL_SECRET: '' });
    }
    expect(variablesOf('{ url: example.com/image:1 }', '')).not.toHaveProperty('ISTIO_META_WASM_IMAGE_PULL_SECRET');
  });

  it('a proxy in another namespace does not receive pull secrets of the root namespace', () => {
    const { context } = givenMesh(`
apiVersion: extensions.istio.io/v1alpha1
kind: WasmPlugin
metadata: { name: one, namespace: istio-system }
spec: { url: example.com/image, imagePullSecret: pull }
---
apiVersion: v1
kind: Secret
metadata: { name: pull, namespace: istio-system }
stringData: { ".dockerconfigjson": '{"auths":{"secret.test":{}}}' }
---
apiVersion: v1
kind: Secret
metadata: { name: pull, namespace: shop }
stringData: { ".dockerconfigjson": '{"auths":{"secret.test":{}}}' }`);
    for (const namespace of ['shop', 'istio-system']) {
      const shape = givenShape({ namespace, isOfNamespace: true, metadata: { WASM_FETCH: 'true' } }, context);
      const [resource] = buildWasmPlugins(shape, context, ['istio-system.one']);
      const text = Buffer.from((resource!.message as TypedExtensionConfig).typedConfig!.value).toString();
      expect(text.includes('secret.test')).toBe(namespace === 'istio-system');
    }
  });

  it('plugins have separate VMs if their fetched code or environment variables differ', () => {
    const vmIdOf = (spec: string): string => {
      const vm = buildPlugin(spec, modules).wasm!.config!.vm;
      return vm.case === 'vmConfig' ? vm.value.vmId : '';
    };
    const remote = (sha256: string, extraSpec = ''): string =>
      `{ url: "http://modules.test:8080/a.wasm", sha256: ${sha256}${extraSpec} }`;
    const env = (value: string): string => `, vmConfig: { env: [{ name: A, value: ${value} }] }`;
    const specs = [
      ...[remote(hash), remote(hash.replace('2', '3')), remote(hash, env('a')), remote(hash, env('b'))],
      ...[`{ url: "file:///a"${env('a')} }`, `{ url: "file:///a"${env('b')} }`, '{ url: "file:///a" }'],
    ];
    const ids = specs.map(vmIdOf);
    expect(new Set(ids).size).toBe(specs.length);
    expect(ids.at(-1)).toBe('');
    expect(vmIdOf(remote(hash, ', pluginConfig: { a: 1 }'))).toBe(ids[0]);
  });

  it.each([
    ['a registry image, without an agent that pulls it', 'example.com/image:1', ''],
    ['a URL whose host is not a service', 'http://elsewhere.test/a.wasm', `, sha256: ${hash}`],
    ['an HTTP URL without checksum', 'http://modules.test:8080/a.wasm', ''],
  ])('a plugin without FAIL_OPEN denies everything with %s', (_, url, extraSpec) => {
    const closedPlugin = buildPlugin(`{ url: "${url}"${extraSpec} }`, modules);
    expect(closedPlugin.wasm).toBeUndefined();
    expect(closedPlugin.rbac?.rules).toMatchObject({ action: 0, policies: {} });
    expect(buildPlugin(`{ url: "${url}"${extraSpec}, failStrategy: FAIL_OPEN }`, modules).rbac?.rules).toBeUndefined();
  });

  it.each([
    ['a version that may crash with SIGSEGV', { version: [1, 37, 0], hasV8: true }],
    ['a build without V8', { version: [1, 38, 3], hasV8: false }],
  ] as const)('a plugin without FAIL_OPEN denies everything on an Envoy with %s', (_, envoy) => {
    for (const url of ['file:///a.wasm', 'http://modules.test:8080/a.wasm']) {
      const spec = (extraSpec = ''): string => `{ url: "${url}", sha256: ${hash}${extraSpec} }`;
      const closedPlugin = buildPlugin(spec(), modules, { envoy });
      expect(closedPlugin.wasm).toBeUndefined();
      expect(closedPlugin.rbac?.rules).toMatchObject({ action: 0, policies: {} });
      expect(buildPlugin(spec(', failStrategy: FAIL_OPEN'), modules, { envoy }).rbac?.rules).toBeUndefined();
      expect(buildPlugin(spec(), modules, { envoy: { version: [1, 38, 2], hasV8: true } }).wasm).toBeDefined();
    }
  });

  it('proxies of the same mesh receive different plugins despite a shared cache', () => {
    const { context } = givenMesh(`
apiVersion: extensions.istio.io/v1alpha1
kind: WasmPlugin
metadata: { name: one, namespace: shop }
spec: { url: "file:///a.wasm" }`);
    const recalled = new Map<string, { readonly dependsOn: readonly ConfigKey[] }>();
    const cache: Memory = {
      getOrBuild: (type, key, _, build) => {
        const cachedValue = recalled.get(`${type} ${key}`) ?? build(undefined);
        recalled.set(`${type} ${key}`, cachedValue);
        return cachedValue as ReturnType<typeof build>;
      },
      latestValue: (type, key) => recalled.get(`${type} ${key}`),
    };
    const types = [36, 40, 36].map((minor) => {
      const shape = givenShape({ namespace: 'shop', envoy: { version: [1, minor, 0], hasV8: true } }, context);
      const [resource] = buildWasmPlugins(shape, context, ['shop.one'], cache);
      return (resource!.message as TypedExtensionConfig).typedConfig!.typeUrl.split('.').at(-1);
    });
    expect(types).toEqual(['RBAC', 'Wasm', 'RBAC']);
  });

  it('a plugin applies only to the workloads that it selects', () => {
    expect(buildPlugin('{ url: "file:///a.wasm", selector: { matchLabels: { app: other } } }')).toEqual({});
  });
});
