import { describe, expect, it } from 'vitest';
import { GivenWorld, givenObject } from '../../../test/fixtures/given-world.ts';
import type { ResourceChange } from '../ads/resource-source.ts';
import { EncodedCache } from './encoded-cache.ts';
import { MeshResources } from './mesh-resources.ts';

const strict = givenObject('PeerAuthentication', 'a', 'own', { mtls: 'STRICT' });
const lax = givenObject('PeerAuthentication', 'a', 'own', { mtls: 'PERMISSIVE' });
const forced: ResourceChange = { version: '', forced: true, configs: new Set() };

describe('a node that should take mutual TLS alone and has no certificates', () => {
  it('is told of when it connects, and again only when that was no longer so', () => {
    const world = new GivenWorld([strict]);
    const warnings: string[] = [];
    const resources = new MeshResources({
      context: () => world.state.context,
      cache: new EncodedCache({ maxEntries: 0 }),
      warn: (node, message) => warnings.push(`${node}: ${message}`),
    });
    const connect = (id: string, metadata: object) => {
      const opened = resources.open({
        id: `sidecar~10.0.0.1~${id}.a~a.svc.cluster.local`,
        cluster: '',
        metadata: { ...metadata },
      });
      if ('error' in opened) throw new Error(opened.error);
      return opened.resources;
    };
    connect('with', { NAMESPACE: 'a', ISTIO_VERSION: '1.30.0' });
    expect(warnings).toEqual([]);

    const bare = connect('bare', { NAMESPACE: 'a' });
    expect(warnings).toEqual([expect.stringMatching(/bare\.a.*: PeerAuthentication a\/own asks for mutual TLS alone/)]);
    bare.typesToPush(forced, []);
    expect(warnings).toHaveLength(1);

    world.put(lax);
    bare.typesToPush(forced, []);
    world.put(strict);
    bare.typesToPush(forced, []);
    expect(warnings).toHaveLength(2);
  });
});
