import { expect, it } from 'vitest';
import { clusterType, listenerType } from '../../../machines/discovery/xds/ads-types.ts';
import { EnvoyRejections } from './envoy-rejections.ts';
import type { FollowedProxy } from './proxy-progress.ts';
import type { RejectionCause } from './rejection-origin.ts';

interface Named extends FollowedProxy {
  readonly name: string;
  lastError: string;
}

/** A proxy with a separate shape that rejects listeners and clusters. */
function proxyNamed(name: string): Named {
  const proxy = { name, says: '0' };
  const watch = { nonceSent: '1', versionSent: 'v/2', versionAcked: 'v/1', names: [] };
  const watches = Object.fromEntries(
    [listenerType, clusterType].map((type) => [
      type,
      Object.defineProperty({ ...watch }, 'lastError', { get: () => proxy.says }),
    ]),
  );
  return Object.assign(proxy, { shape: {}, context: {}, watches }) as unknown as Named;
}

function createRejections() {
  const rejections = new EnvoyRejections<Named>();
  const traced: string[] = [];
  /** Traces one rejection, after which the time limit is reached. */
  const trace = (): boolean => {
    let remaining = 1;
    return rejections.trace(
      ({ name }): RejectionCause => {
        remaining--;
        traced.push(name);
        return { typeUrl: listenerType, resource: 'listener', reason: name, keys: [`Gateway/shop/${name}`] };
      },
      () => remaining > 0,
    );
  };
  const reject = (proxy: Named): void => {
    proxy.lastError += '!';
    rejections.add(proxy, listenerType);
  };
  return { rejections, traced, look: trace, reject };
}

it("EnvoyRejections traces a proxy's rejection even if other proxies repeatedly reject with new texts", () => {
  const { rejections, traced, look, reject } = createRejections();
  const loud = ['loud-1', 'loud-2', 'loud-3'].map(proxyNamed);
  const quietProxy = proxyNamed('quiet');
  for (const proxy of loud) reject(proxy);
  reject(quietProxy);
  for (let i = 0; i < 4; i++) {
    look();
    for (const proxy of loud) reject(proxy);
  }
  expect(traced).toEqual(['loud-1', 'loud-2', 'loud-3', 'quiet']);
  expect(rejections.rejectionsByObject().get('Gateway/shop/quiet')?.proxies).toBe(1);
});

it('EnvoyRejections drops the causes of a proxy when the proxy disconnects or accepts a later response', () => {
  const { rejections, look, reject } = createRejections();
  const [one, two] = [proxyNamed('one'), proxyNamed('two')];
  reject(one);
  reject(two);
  rejections.add(two, clusterType);
  while (!look());
  expect([...rejections.rejectionsByObject().keys()]).toEqual(['Gateway/shop/one', 'Gateway/shop/two']);
  expect(rejections.remove(two, listenerType)).toBe(true);
  expect([...rejections.rejectionsByObject().keys()]).toContain('Gateway/shop/two');
  expect([rejections.remove(two, clusterType), rejections.disconnected(one)]).toEqual([true, true]);
  expect(rejections.isEmpty).toBe(true);
});
