import { describe, expect, it } from 'vitest';
import { GivenWorld, givenObject } from '../../../test/fixtures/given-world.ts';
import type { EnvoyBuild } from '../../model/node/envoy-build.ts';
import type { ResourceChange } from '../xds/resource-source.ts';
import { EncodedCache } from './cache/encoded-cache.ts';
import { MeshResources } from './mesh-resources.ts';

const strict = givenObject('PeerAuthentication', 'a', 'own', { mtls: 'STRICT' });
const lax = givenObject('PeerAuthentication', 'a', 'own', { mtls: 'PERMISSIVE' });
const forcedChange: ResourceChange = { version: '', forced: true, configs: new Set() };

describe('a node that must use mutual TLS without certificates', () => {
  it('causes a warning when it connects, and again only if the problem recurs after its resolution', () => {
    const world = new GivenWorld([strict]);
    const warnings: string[] = [];
    const resources = new MeshResources({
      context: () => world.state.context,
      cache: new EncodedCache({ maxEntries: 0 }),
      warn: (node, message) => warnings.push(`${node}: ${message}`),
    });
    const connect = (id: string, metadata: object) => {
      const openedNode = resources.openNode({
        id: `sidecar~10.0.0.1~${id}.a~a.svc.cluster.local`,
        cluster: '',
        metadata: { ...metadata },
      });
      if ('error' in openedNode) throw new Error(openedNode.error);
      return openedNode.resources;
    };
    connect('with', { NAMESPACE: 'a', ISTIO_VERSION: '1.30.0' });
    expect(warnings).toEqual([]);

    const bareNode = connect('bare', { NAMESPACE: 'a' });
    expect(warnings).toEqual([expect.stringMatching(/bare\.a.*: PeerAuthentication a\/own requires mutual TLS/)]);
    bareNode.typesToPush(forcedChange, []);
    expect(warnings).toHaveLength(1);

    world.put(lax);
    bareNode.typesToPush(forcedChange, []);
    world.put(strict);
    bareNode.typesToPush(forcedChange, []);
    expect(warnings).toHaveLength(2);
  });
});

describe('a node with Wasm configuration', () => {
  const plugin = (name: string): ReturnType<typeof givenObject> =>
    givenObject('WasmPlugin', 'a', name, { url: 'file:///a.wasm' });

  function warningsFor(envoy: EnvoyBuild | undefined, plugins: number): string[] {
    const world = new GivenWorld(Array.from({ length: plugins }, (_, i) => plugin(`p${i}`)));
    const warnings: string[] = [];
    const resources = new MeshResources({
      context: () => world.state.context,
      cache: new EncodedCache({ maxEntries: 0 }),
      warn: (_, message) => warnings.push(message),
    });
    const openedNode = resources.openNode({
      id: 'sidecar~10.0.0.1~web.a~a.svc.cluster.local',
      cluster: '',
      metadata: { NAMESPACE: 'a' },
      ...(envoy && { envoy }),
    });
    if ('error' in openedNode) throw new Error(openedNode.error);
    // A push without a relevant change does not warn again.
    openedNode.resources.typesToPush(forcedChange, []);
    return warnings;
  }

  it('causes a warning with its Envoy version and the unsupported objects', () => {
    expect(warningsFor({ version: [1, 36, 2], hasV8: true }, 1)).toEqual([
      expect.stringMatching(/^Wasm code of WasmPlugin a\/p0 is not sent.* Envoy 1\.36\.2 may crash/),
    ]);
    expect(warningsFor({ version: [1, 38, 3], hasV8: false }, 1)).toEqual([
      expect.stringContaining('Envoy 1.38.3 was built without envoy.wasm.runtime.v8'),
    ]);
    expect(warningsFor({ version: [1, 41, 0], hasV8: true }, 1)).toEqual([
      expect.stringContaining('Envoy 1.41.0 is newer than the supported versions'),
    ]);
    expect(warningsFor({ version: [1, 36, 2], hasV8: true }, 7)).toEqual([
      expect.stringContaining('a/p4 and 2 more is'),
    ]);
  });

  it('causes no warning if it has no Wasm objects or its Envoy supports them', () => {
    expect(warningsFor({ version: [1, 36, 2], hasV8: true }, 0)).toEqual([]);
    expect(warningsFor({ version: [1, 40, 0], hasV8: true }, 1)).toEqual([]);
    expect(warningsFor(undefined, 1)).toEqual([]);
  });
});
