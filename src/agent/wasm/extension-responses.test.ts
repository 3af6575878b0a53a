import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { anyPack, anyUnpack } from '@bufbuild/protobuf/wkt';
import { expect, test } from 'vitest';
import { extensionType } from '../../../machines/discovery/xds/ads-types.ts';
import { TypedExtensionConfigSchema } from '../../gen/envoy/config/core/v3/extension_pb.ts';
import { RBACSchema } from '../../gen/envoy/extensions/filters/http/rbac/v3/rbac_pb.ts';
import { WasmSchema } from '../../gen/envoy/extensions/filters/http/wasm/v3/wasm_pb.ts';
import { RBACSchema as NetworkRbacSchema } from '../../gen/envoy/extensions/filters/network/rbac/v3/rbac_pb.ts';
import { WasmSchema as NetworkWasmSchema } from '../../gen/envoy/extensions/filters/network/wasm/v3/wasm_pb.ts';
import {
  DeltaDiscoveryResponseSchema,
  DiscoveryResponseSchema,
} from '../../gen/envoy/service/discovery/v3/discovery_pb.ts';
import type { RemoteCode } from './extension-config.ts';
import { ExtensionResponses } from './extension-responses.ts';

interface PluginOptions {
  url?: string;
  sha256?: string;
  failOpen?: boolean;
  cluster?: string;
  network?: boolean;
  variables?: Readonly<Record<string, string>>;
}

function extension(name: string, options: PluginOptions = {}) {
  const {
    url = `http://modules.test/${name}`,
    sha256 = '',
    failOpen = false,
    cluster = '_',
    network,
    variables,
  } = options;
  const config: MessageInitShape<typeof WasmSchema>['config'] = {
    ...{ name, rootId: 'root', failOpen },
    vm: {
      case: 'vmConfig',
      value: {
        ...{ vmId: 'a', runtime: 'envoy.wasm.runtime.v8' },
        code: {
          specifier: {
            case: 'remote',
            value: { httpUri: { uri: url, httpUpstreamType: { case: 'cluster', value: cluster } }, sha256 },
          },
        },
        environmentVariables: { keyValues: { A: 'b', ...variables } },
      },
    },
  };
  const typedConfig = network
    ? anyPack(NetworkWasmSchema, create(NetworkWasmSchema, { config }))
    : anyPack(WasmSchema, create(WasmSchema, { config }));
  return anyPack(TypedExtensionConfigSchema, create(TypedExtensionConfigSchema, { name, typedConfig }));
}

type Packed = ReturnType<typeof extension>;

/** Handles responses of one protocol; records required modules and forwarded responses. */
function stream(protocol: 'sotw' | 'delta', receivedNames = new Set(['shop.a', 'shop.b'])) {
  const required: RemoteCode[] = [];
  const released: number[] = [];
  const forwarded: { nonce: string; names: string[]; extensions: Packed[]; version: string }[] = [];
  const responses = new ExtensionResponses(
    protocol,
    { require: (code) => required.push(code), release: (id) => released.push(id), received: receivedNames },
    (message) => {
      const { nonce, resources, version } = protocol === 'sotw' ? readSotw(message) : readDelta(message);
      const names = resources.map((one) => anyUnpack(one, TypedExtensionConfigSchema)!.name);
      forwarded.push({ nonce, names, extensions: resources, version });
    },
  );
  const takeResponse = (nonce: string, extensions: Packed[], removedResources: string[] = []): void => {
    const head = { typeUrl: extensionType, nonce };
    responses.receive(
      protocol === 'sotw'
        ? toBinary(
            DiscoveryResponseSchema,
            create(DiscoveryResponseSchema, { ...head, versionInfo: '1', resources: extensions }),
          )
        : toBinary(
            DeltaDiscoveryResponseSchema,
            create(DeltaDiscoveryResponseSchema, {
              ...{ ...head, systemVersionInfo: '1', removedResources },
              resources: extensions.map((resource) => ({
                ...{ name: anyUnpack(resource, TypedExtensionConfigSchema)!.name, version: '7', resource },
              })),
            }),
          ),
    );
  };
  return { responses, required, released, forwarded, take: takeResponse };
}

function readSotw(message: Uint8Array) {
  const { nonce, resources, versionInfo, typeUrl } = fromBinary(DiscoveryResponseSchema, message);
  expect(typeUrl).toBe(extensionType);
  return { nonce, resources, version: versionInfo };
}

function readDelta(message: Uint8Array) {
  const { nonce, resources, systemVersionInfo, typeUrl } = fromBinary(DeltaDiscoveryResponseSchema, message);
  expect(typeUrl).toBe(extensionType);
  for (const { version } of resources) expect(version).toBe('7');
  return { nonce, resources: resources.map(({ resource }) => resource!), version: systemVersionInfo };
}

function wasmOf(packedExtension: Packed | undefined) {
  return anyUnpack(anyUnpack(packedExtension!, TypedExtensionConfigSchema)!.typedConfig!, WasmSchema)?.config;
}

function codeOf(packedExtension: Packed | undefined) {
  const vm = wasmOf(packedExtension)?.vm;
  return vm?.case === 'vmConfig' ? vm.value.code?.specifier : undefined;
}

const file = { case: 'local', value: { specifier: { case: 'filename', value: '/modules/a.wasm' } } };

test.each(['sotw', 'delta'] as const)(
  "delays a response until its module is fetched, and inserts the file's path (%s)",
  (protocol) => {
    const { responses, required, forwarded, take } = stream(protocol);
    take('n1', [extension('shop.a', { sha256: 'abc' })]);
    expect(required).toEqual([
      {
        ...{ extension: 'shop.a', url: 'http://modules.test/shop.a', sha256: 'abc', failsOpen: false },
        ...{ pullPolicy: undefined, resourceVersion: '', pullSecret: undefined },
      },
    ]);
    expect(forwarded).toEqual([]);
    responses.settle(1, { file: '/modules/a.wasm' });
    expect(forwarded).toMatchObject([{ nonce: 'n1', names: ['shop.a'], version: '1' }]);
    expect(codeOf(forwarded[0]!.extensions[0])).toMatchObject(file);
    // Other fields are unchanged.
    expect(wasmOf(forwarded[0]!.extensions[0])).toMatchObject({
      ...{ name: 'shop.a', rootId: 'root' },
      vm: { value: { vmId: 'a', runtime: 'envoy.wasm.runtime.v8', environmentVariables: { keyValues: { A: 'b' } } } },
    });
    expect(responses.refusalOf('n1')).toBeUndefined();
  },
);

test('immediately forwards code unchanged if Envoy fetches it from a cluster', () => {
  const { required, forwarded, take } = stream('sotw');
  take('n1', [extension('shop.a', { cluster: 'outbound|80||modules.test' })]);
  expect(required).toEqual([]);
  expect(codeOf(forwarded[0]!.extensions[0])).toMatchObject({ case: 'remote' });
});

test('keeps the order of responses', () => {
  const { responses, forwarded, take } = stream('delta');
  take('n1', [extension('shop.a')]);
  take('n2', [], ['shop.b']);
  expect(forwarded).toEqual([]);
  responses.settle(1, { file: '/modules/a.wasm' });
  expect(forwarded.map(({ nonce }) => nonce)).toEqual(['n1', 'n2']);
});

test.each(['sotw', 'delta'] as const)(
  'omits a module that could not be fetched, and changes the acknowledgement to a rejection once (%s)',
  (protocol) => {
    const { responses, forwarded, take } = stream(protocol);
    take('n1', [extension('shop.a'), extension('shop.b', { url: 'http://user:secret@modules.test/b' })]);
    responses.settle(1, { file: '/modules/a.wasm' });
    responses.settle(2, { reason: 'status must be 200, got 404' });
    expect(forwarded).toMatchObject([{ nonce: 'n1', names: ['shop.a'] }]);
    expect(responses.refusalOf('n0')).toBeUndefined();
    expect(responses.refusalOf('n1')).toBe(
      'extension shop.b: failed to fetch Wasm module http://modules.test/b: status must be 200, got 404',
    );
    expect(responses.refusalOf('n1')).toBeUndefined();
    // The module is fetched later.
    responses.settle(2, { file: '/modules/a.wasm' });
    expect(forwarded[1]).toMatchObject({ nonce: 'n1', names: ['shop.b'] });
    expect(codeOf(forwarded[1]!.extensions[0])).toMatchObject(file);
  },
);

test.each([
  ['HTTP', false],
  ['NETWORK', true],
] as const)('replaces a plugin that fails open with a filter that allows all traffic (%s)', (_, network) => {
  const { responses, forwarded, take } = stream('sotw');
  take('n1', [extension('shop.a', { failOpen: true, network })]);
  responses.settle(1, { reason: 'no' });
  const { typedConfig, name } = anyUnpack(forwarded[0]!.extensions[0]!, TypedExtensionConfigSchema)!;
  expect(name).toBe('shop.a');
  if (network) {
    expect(anyUnpack(typedConfig!, NetworkRbacSchema)).toMatchObject({ statPrefix: 'wasm.' });
    expect(anyUnpack(typedConfig!, NetworkRbacSchema)!.rules).toBeUndefined();
  } else expect(anyUnpack(typedConfig!, RBACSchema)!.rules).toBeUndefined();
  expect(responses.refusalOf('n1')).toContain('extension shop.a: failed to fetch');
});

test.each([
  ['HTTP', false],
  ['NETWORK', true],
] as const)(
  'replaces a plugin that fails closed with a filter that denies all traffic if Envoy has no previous version (%s)',
  (_, network) => {
    const receivedNames = new Set<string>();
    const { responses, forwarded, take } = stream('delta', receivedNames);
    const failing = (nonce: string, id: number, names: string[], failOpen = false): void => {
      take(nonce, [extension('shop.a', { network, failOpen })]);
      responses.settle(id, { reason: 'no' });
      expect(forwarded.at(-1)).toMatchObject({ nonce, names });
    };
    const rules = () => {
      const { typedConfig } = anyUnpack(forwarded.at(-1)!.extensions[0]!, TypedExtensionConfigSchema)!;
      return anyUnpack(typedConfig!, network ? NetworkRbacSchema : RBACSchema)!.rules;
    };
    failing('n1', 1, ['shop.a']);
    expect(rules()).toMatchObject({ action: 0, policies: {} });
    // Neither replacement filter counts as a previous version of the plugin.
    failing('n2', 2, ['shop.a'], true);
    expect(rules()).toBeUndefined();
    failing('n3', 3, ['shop.a']);
    expect(rules()).toMatchObject({ policies: {} });
    responses.settle(3, { file: '/modules/a.wasm' });
    expect([...receivedNames]).toEqual(['shop.a']);
    failing('n4', 4, []);
    // Another stream of the same Envoy.
    const laterStream = stream('sotw', receivedNames);
    laterStream.responses.requested({ names: new Set(['shop.a']), removed: [] });
    laterStream.take('n1', [extension('shop.a', { network })]);
    laterStream.responses.settle(1, { reason: 'no' });
    expect(laterStream.forwarded.at(-1)).toMatchObject({ names: [] });
    laterStream.responses.requested({ names: new Set(), removed: [] });
    laterStream.take('n2', [extension('shop.a', { network })]);
    laterStream.responses.settle(2, { reason: 'no' });
    expect(laterStream.forwarded.at(-1)).toMatchObject({ names: ['shop.a'] });
  },
);

test('cancels the fetch for a response if a newer response has the same name or removes it', () => {
  const { responses, released, forwarded, take } = stream('delta');
  take('n1', [extension('shop.a'), extension('shop.b')]);
  responses.settle(1, { reason: 'no' });
  responses.settle(2, { reason: 'no' });
  take('n2', [extension('shop.a', { url: 'http://modules.test/new' })], ['shop.b']);
  expect(released).toEqual([1, 2]);
  responses.settle(1, { file: '/modules/old.wasm' });
  expect(forwarded).toHaveLength(1);
  responses.settle(3, { file: '/modules/a.wasm' });
  expect(forwarded[1]).toMatchObject({ nonce: 'n2', names: ['shop.a'] });
});

test('limits the number of waiting responses and modules', () => {
  const { required, take } = stream('sotw');
  take(
    'n1',
    Array.from({ length: 300 }, (_, index) => extension(`shop.${index}`)),
  );
  expect(required).toHaveLength(256);
  for (let index = 2; index <= 16; index++) take(`n${index}`, []);
  expect(() => take('n17', [])).toThrow('more than 16 responses wait');
});

test.each([
  ['HTTP', false],
  ['NETWORK', true],
] as const)('reads the variables meant for the agent, and removes them for Envoy (%s)', (_, network) => {
  const { responses, required, forwarded, take } = stream('delta');
  const variables = {
    ISTIO_META_WASM_IMAGE_PULL_SECRET: '{"auths":{}}',
    ISTIO_META_WASM_IMAGE_PULL_POLICY: 'Always',
    ISTIO_META_WASM_PLUGIN_RESOURCE_VERSION: '7',
  };
  take('n1', [extension('shop.a', { variables, network })]);
  expect(required).toMatchObject([{ pullSecret: '{"auths":{}}', pullPolicy: 'Always', resourceVersion: '7' }]);
  responses.settle(1, { file: '/modules/a.wasm' });
  const [sentExtension] = forwarded[0]!.extensions;
  const config = network
    ? anyUnpack(anyUnpack(sentExtension!, TypedExtensionConfigSchema)!.typedConfig!, NetworkWasmSchema)?.config
    : wasmOf(sentExtension);
  expect(config?.vm.value?.environmentVariables?.keyValues).toEqual({ A: 'b' });
});

test('accepts a response only after its last missing module is fetched', () => {
  const { responses, forwarded, take } = stream('sotw');
  take('n1', [extension('shop.a'), extension('shop.b')]);
  responses.settle(1, { reason: 'a is missing' });
  responses.settle(2, { reason: 'b is missing' });
  expect(responses.refusalOf('n1')).toMatch(/a is missing; .*b is missing/);
  responses.settle(1, { file: '/modules/a.wasm' });
  expect(responses.refusalOf('n1')).toMatch(/^extension shop.b: .*b is missing$/);
  // Envoy has acknowledged no part of the response yet.
  responses.settle(2, { file: '/modules/b.wasm' });
  expect(forwarded.map(({ names }) => names)).toEqual([[], ['shop.a'], ['shop.b']]);
  expect(responses.refusalOf('n1')).toBeUndefined();
});
