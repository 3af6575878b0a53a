/** `Reconciled` of an object whose only proxy was served by a replica that died, on a real API server. */
import { describe, expect, it } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { sized } from '../harness/size-of-run.ts';
import { givenOwnServer } from './given-cluster.ts';
import { defineShippedKinds, of } from './mesh-objects.ts';
import { Replicas } from './replica.ts';

/** It waits 10 s for a status that is between edges; the unit tests of `distribution` cover the rule. */
const isFull = sized({ short: false, full: true });

interface Condition {
  readonly type: string;
  readonly status?: string;
  readonly reason?: string;
  readonly message?: string;
}

describe.runIf(isFull)('Reconciled of an object whose only proxy was served by a replica that died', () => {
  const { cluster } = givenOwnServer();
  const never = new AbortController().signal;
  const replicas = new Replicas(cluster, { PILOT_LEASE_DURATION: '3s' });
  const route = (timeout: string) =>
    cluster.apply(of.virtualServices, {
      metadata: { name: 'cart' },
      spec: {
        hosts: ['cart.example.com'],
        http: [{ timeout, route: [{ destination: { host: 'cart.example.com' } }] }],
      },
    });

  async function reconciled(): Promise<Condition> {
    const { namespace } = cluster;
    const resource = of.virtualServices;
    const { status } = await cluster.admin.request({ method: 'GET', resource, namespace, name: 'cart' }, never);
    const { conditions = [] } = (status ?? {}) as { conditions?: Condition[] };
    return conditions.find(({ type }) => type === 'Reconciled') ?? { type: 'Reconciled' };
  }

  it('is Unknown and names the dead replica until its proxy reconnects, then True', async () => {
    await defineShippedKinds(cluster);
    await cluster.apply(of.serviceEntries, {
      metadata: { name: 'cart' },
      spec: {
        ...{ hosts: ['cart.example.com'], resolution: 'STATIC', endpoints: [{ address: '192.0.2.1' }] },
        ports: [{ number: 8080, name: 'http', protocol: 'HTTP' }],
      },
    });
    const first = await replicas.start('first');
    replicas.connect(first.plainPort, { ip: '10.9.0.7' });
    await route('1s');
    await eventually('the proxy has the route', async () => (await reconciled()).status === 'True');
    const second = await replicas.start('second');
    await first.program.stop({ signal: 'SIGKILL' });
    await route('2s');
    const unknown = await eventually('the status is Unknown', async () => {
      const condition = await reconciled();
      expect(condition.reason).not.toBe('NoProxies');
      return condition.status === 'Unknown' ? condition : undefined;
    });
    expect(unknown.reason).toBe('ReplicaNotReporting');
    expect(unknown.message).toMatch(/^no proxy of this replica; not reported by first_[0-9a-f-]{36}$/);
    replicas.connect(second.plainPort, { ip: '10.9.0.7' });
    const done = await eventually('the status is True', async () => {
      const condition = await reconciled();
      return condition.status === 'True' ? condition : undefined;
    });
    expect(done.message).toBe('1/1 proxies up to date');
  });
});
