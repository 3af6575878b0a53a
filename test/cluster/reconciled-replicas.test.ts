/** `Reconciled` of an object whose only proxy was connected to a killed replica, with a real API server. */
import { describe, expect, it } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { sized } from '../harness/size-of-run.ts';
import { givenOwnServer } from './given-cluster.ts';
import { defineShippedKinds, of } from './mesh-objects.ts';
import { Replicas } from './replica.ts';

/** The long form waits 10 s for a status between two renewals; the unit tests of `distribution` cover the rule. */
const isFull = sized({ short: false, full: true });

interface Condition {
  readonly type: string;
  readonly status?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly observedGeneration?: number;
}

describe.runIf(isFull)('the condition Reconciled of an object', () => {
  const { cluster } = givenOwnServer();
  const neverAborted = new AbortController().signal;
  const env = { PILOT_LEASE_DURATION: '3s' };
  const replicas = new Replicas(cluster, env);
  const canaryReplicas = new Replicas(cluster, { ...env, REVISION: 'canary' });
  /** Changes a cluster, so that each proxy gets a response that it must acknowledge. */
  const rule = (connectTimeout: string) =>
    cluster.apply(of.destinationRules, {
      metadata: { name: 'cart' },
      spec: { host: 'cart.example.com', trafficPolicy: { connectionPool: { tcp: { connectTimeout } } } },
    });

  /**
   * Waits until the condition is True.
   * @returns its message
   */
  async function whenTrue(observedGeneration: number): Promise<string | undefined> {
    const { message } = await eventually(`the status of generation ${observedGeneration} is True`, async () => {
      const condition = await reconciled();
      return condition.status === 'True' && condition.observedGeneration === observedGeneration ? condition : undefined;
    });
    return message;
  }

  async function reconciled(): Promise<Condition> {
    const { namespace } = cluster;
    const resource = of.destinationRules;
    const { status } = await cluster.admin.request({ method: 'GET', resource, namespace, name: 'cart' }, neverAborted);
    const { conditions = [] } = (status ?? {}) as { conditions?: Condition[] };
    return conditions.find(({ type }) => type === 'Reconciled') ?? { type: 'Reconciled' };
  }

  it('is Unknown and names the killed replica until its proxy reconnects, then True', async () => {
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
    await rule('1s');
    await eventually('the proxy has the route', async () => (await reconciled()).status === 'True');
    const secondReplica = await replicas.start('second');
    await first.program.stop({ signal: 'SIGKILL' });
    await rule('2s');
    const reasons = new Set<string | undefined>();
    const unknownCondition = await eventually('the status is Unknown', async () => {
      const condition = await reconciled();
      reasons.add(condition.reason);
      return condition.status === 'Unknown' ? condition : undefined;
    });
    expect(reasons).not.toContain('NoProxies');
    expect(unknownCondition.reason).toBe('ReplicaNotReporting');
    expect(unknownCondition.message).toMatch(
      /^0\/0 proxies up to date; replicas first_[0-9a-f-]{36} have not reported yet$/,
    );
    replicas.connect(secondReplica.plainPort, { ip: '10.9.0.7' });
    const trueCondition = await eventually('the status is True', async () => {
      const condition = await reconciled();
      return condition.status === 'True' ? condition : undefined;
    });
    expect(trueCondition.message).toBe('1/1 proxies up to date');
  });

  it('counts the proxies of all replicas regardless of which replica writes the status', async () => {
    const third = await replicas.start('third');
    replicas.connect(third.plainPort, { ip: '10.9.0.8' });
    await rule('3s');
    expect(await whenTrue(3)).toBe('2/2 proxies up to date');
  });

  it('is not True while a proxy that connected to a new replica lacks the object', async () => {
    const fourth = await replicas.start('fourth');
    const stream = replicas.connect(fourth.plainPort, { ip: '10.9.0.9' });
    const acknowledge = stream.onResponse;
    const unreadResponses: Parameters<typeof acknowledge>[0][] = [];
    stream.onResponse = (response) => void unreadResponses.push(response);
    await rule('4s');
    const earlyConditions: Condition[] = [];
    const pending = await eventually(
      'the status counts the proxy',
      async () => {
        const condition = await reconciled();
        if (condition.status === 'True' && condition.observedGeneration === 4) earlyConditions.push(condition);
        return condition.message?.startsWith('2/3') ? condition : undefined;
      },
      { everyMs: 20 },
    );
    expect(earlyConditions).toEqual([]);
    expect(pending).toMatchObject({ status: 'False', reason: 'Pending', observedGeneration: 4 });
    stream.onResponse = acknowledge;
    for (const response of unreadResponses) acknowledge(response);
    expect(await whenTrue(4)).toBe('3/3 proxies up to date');
  });

  it('does not count a replica of another revision', async () => {
    const canary = await canaryReplicas.start('canary');
    canaryReplicas.connect(canary.plainPort, { ip: '10.9.0.10' });
    await rule('5s');
    expect(await whenTrue(5)).toBe('3/3 proxies up to date');
  });
});
