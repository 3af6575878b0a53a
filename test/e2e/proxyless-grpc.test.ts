/** gRPC clients in Go and Node that get their configuration from the control plane, without a proxy. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { HealthServer } from '../grpc/health-server.ts';
import { type Language, PeerClient, writeBootstrap } from '../grpc/peers.ts';
import { ControlPlane, stopControlPlanes } from '../harness/control-plane.ts';
import { eventually, eventuallyHolds } from '../harness/eventually.ts';
import { sized } from '../harness/size-of-run.ts';

const host = 'echo.shop.svc.cluster.local';
const target = `xds:///${host}:7070`;
const languages: readonly Language[] = ['go', 'node'];

let backends: readonly HealthServer[];
let plane: ControlPlane;
let clients: Readonly<Record<Language, PeerClient>>;

function service(
  endpoints: readonly HealthServer[],
  extraFields: (backend: HealthServer) => object = () => ({}),
): string {
  return `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: echo, namespace: shop }
spec:
  hosts: [${host}]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{ number: 7070, name: grpc, protocol: GRPC }]
  endpoints: ${JSON.stringify(endpoints.map((one) => ({ address: '127.0.0.1', ports: { grpc: one.port }, labels: { version: one.name }, ...extraFields(one) })))}
`;
}

const subsets = { host, subsets: ['v1', 'v2'].map((name) => ({ name, labels: { version: name } })) };

function rule(trafficPolicy?: object): string {
  return JSON.stringify({
    ...{ apiVersion: 'networking.istio.io/v1', kind: 'DestinationRule', metadata: { name: 'echo', namespace: 'shop' } },
    spec: { ...subsets, ...(trafficPolicy && { trafficPolicy }) },
  });
}

function routes(...http: readonly object[]): string {
  return JSON.stringify({
    ...{ apiVersion: 'networking.istio.io/v1', kind: 'VirtualService', metadata: { name: 'echo', namespace: 'shop' } },
    spec: { hosts: [host], http },
  });
}

const to = (subset: string, weight?: number): object => ({ destination: { host, subset }, ...(weight && { weight }) });
const isOk = (code: string): boolean => code.toUpperCase() === 'OK';

beforeAll(async () => {
  backends = await Promise.all(['v1', 'v2'].map((name) => HealthServer.start(name)));
  plane = await ControlPlane.serving({}, { 'echo.yaml': service(backends), 'routes.yaml': '', 'rule.yaml': rule() });
  const clientStarts = languages.map(async (language) => {
    const node = {
      id: `sidecar~127.0.0.1~${language}.shop~shop.svc.cluster.local`,
      metadata: { GENERATOR: 'grpc', NAMESPACE: 'shop' },
    };
    const bootstrap = writeBootstrap(plane.root, { serverUri: `127.0.0.1:${plane.port('ads.listening')}`, node });
    return [language, await PeerClient.start(language, bootstrap)] as const;
  });
  clients = Object.fromEntries(await Promise.all(clientStarts)) as typeof clients;
}, 600_000);

afterAll(async () => {
  await Promise.all(Object.values(clients ?? {}).map((client) => client.stop()));
  await stopControlPlanes();
  for (const backend of backends ?? []) backend.stop();
});

afterEach(async () => {
  // A resource that a client rejects is a fault of the control plane.
  expect(plane.lines.filter((line) => line.includes('rejected'))).toEqual([]);
  for (const [name, text] of [
    ['routes.yaml', ''],
    ['rule.yaml', rule()],
  ] as const)
    plane.write(name, text);
});

describe.each(languages)('a gRPC client in %s', (language) => {
  const call = (order: Partial<Parameters<PeerClient['call']>[0]> = {}) => clients[language].call({ target, ...order });
  const backendOf = async (headers: Record<string, string> = {}) => (await call({ headers })).backend;
  const writeConfig = (name: string, text: string): void => plane.write(name, text);

  it.each([`${host}:7070`, 'echo.shop:7070', 'echo:7070', 'echo.shop'])(
    'reaches the service by the target %s',
    async (name) => {
      const outcome = await call({ target: `xds:///${name}` });
      expect(outcome.code.toUpperCase(), outcome.message).toBe('OK');
      expect(['v1', 'v2']).toContain(outcome.backend);
    },
  );

  it('gets an error for a target that does not exist, and the control plane logs the reason', async () => {
    expect(isOk((await call({ target: 'xds:///nothing.shop:7070', timeoutMs: 300 })).code)).toBe(false);
    await eventually('the reason is in the log', () =>
      plane.lines.some(
        (line) => line.includes(`${language}.shop`) && line.includes('no service nothing.shop is visible'),
      ),
    );
  });

  it('splits calls by weight, after a header match and a path prefix', async () => {
    writeConfig(
      'routes.yaml',
      routes(
        { match: [{ headers: { 'x-user': { exact: 'ann' } } }], route: [to('v2')] },
        { match: [{ uri: { prefix: '/other.' } }], route: [to('v2')] },
        { match: [{ uri: { prefix: '/grpc.health.v1' } }], route: [to('v1', 80), to('v2', 20)] },
      ),
    );
    await eventually('the header decides', async () => {
      const names = await Promise.all(Array.from({ length: 8 }, () => backendOf({ 'x-user': 'ann' })));
      return names.every((name) => name === 'v2');
    });
    const { v1 = 0, v2 = 0, ...other } = await clients[language].split(200, { target });
    expect(other).toEqual({});
    expect(v1).toBeGreaterThan(v2 * 2);
    expect(v2).toBeGreaterThan(10);
  });

  it('retries failed calls', async () => {
    writeConfig('routes.yaml', routes({ route: [to('v1')], retries: { attempts: 3, retryOn: 'unavailable' } }));
    await eventually('calls are retried', async () => {
      const id = `${language}-${Math.random()}`;
      return isOk((await call({ headers: { 'x-fail': '2', 'x-call': id } })).code);
    });
    writeConfig('routes.yaml', routes({ route: [to('v1')], retries: { attempts: 0 } }));
    await eventually('calls are not retried', async () => {
      const id = `${language}-${Math.random()}`;
      return (await call({ headers: { 'x-fail': '1', 'x-call': id } })).code === 'Unavailable';
    });
  });

  it('injects faults', async () => {
    writeConfig(
      'routes.yaml',
      routes({ fault: { abort: { grpcStatus: 'RESOURCE_EXHAUSTED', percentage: { value: 100 } } }, route: [to('v1')] }),
    );
    await eventually('calls are aborted', async () => (await call()).code === 'ResourceExhausted');
    const delay = { fixedDelay: '1s', percentage: { value: 100 } };
    writeConfig('routes.yaml', routes({ fault: { delay }, route: [to('v1')] }));
    await eventually('calls succeed', async () => isOk((await call()).code));
    // The fault applies to every call by now.
    const { code, ms } = await call();
    expect(isOk(code)).toBe(true);
    expect(ms).toBeGreaterThanOrEqual(990);
  });

  it('ends calls after the timeout of the route', async () => {
    writeConfig('routes.yaml', routes({ timeout: '0.2s', route: [to('v1')] }));
    await eventually('calls time out', async () => {
      return (await call({ headers: { 'x-delay-ms': '3000' } })).code === 'DeadlineExceeded';
    });
  });

  it.each(['LEAST_REQUEST', 'RANDOM', 'ROUND_ROBIN'])(
    'balances load as specified by a DestinationRule with %s',
    async (simple) => {
      writeConfig(
        'rule.yaml',
        rule({ loadBalancer: { simple }, connectionPool: { http: { http2MaxRequests: 100 + simple.length } } }),
      );
      await eventually('the rule is pushed', () => {
        return (
          simple === 'ROUND_ROBIN' ||
          plane.lines.some((line) => line.includes(simple) && line.includes(`${language}.shop`))
        );
      });
      // Until the routes of the previous test are removed, all calls may reach one backend.
      await eventually('both backends are called', async () => {
        return (
          Object.keys(await clients[language].split(20, { target }))
            .sort()
            .join() === 'v1,v2'
        );
      });
    },
  );

  it('sends calls with the same header to one backend', async () => {
    writeConfig('rule.yaml', rule({ loadBalancer: { consistentHash: { httpHeaderName: 'x-user' } } }));
    await eventually('calls are hashed', async () => {
      const split = await clients[language].split(15, { target, headers: { 'x-user': 'ann' } });
      return Object.keys(split).length === 1;
    });
  });

  it('keeps working without features that gRPC lacks, which are logged', async () => {
    writeConfig(
      'routes.yaml',
      routes({
        match: [{ uri: { prefix: '/' } }],
        ...{
          mirror: { host, subset: 'v2' },
          rewrite: { authority: 'other' },
          corsPolicy: { allowOrigins: [{ exact: '*' }] },
        },
        route: [to('v1')],
      }),
    );
    await eventually('v1 alone', async () =>
      (await Promise.all([backendOf(), backendOf(), backendOf()])).every((name) => name === 'v1'),
    );
    // Routes of the previous test may still lead to v1.
    await eventuallyHolds(() => {
      const lines = plane.lines.filter((line) => line.includes(`${language}.shop`)).join('\n');
      for (const text of ['mirroring is ignored', 'rewrite of the authority is ignored', 'corsPolicy is ignored'])
        expect(lines).toContain(`VirtualService shop/echo spec.http[0]: ${text}`);
    });
  });

  /** Makes consecutive calls until the changes apply; returns the failures. */
  async function failuresDuring(changes: () => Promise<void>): Promise<string[]> {
    const failures: string[] = [];
    let [callCount, isOver] = [0, false];
    const calling = (async () => {
      for (; !isOver; callCount++) {
        const { code, message } = await call({ headers: { 'x-user': `user-${callCount % 50}` } });
        if (!isOk(code)) failures.push(`${code}: ${message}`);
      }
    })();
    try {
      await changes();
    } finally {
      isOver = true;
      await calling;
    }
    expect(callCount).toBeGreaterThan(20);
    return failures;
  }

  it('loses no call while a DestinationRule changes the load balancing policy', async () => {
    const backendsOfUser = async (count: number) =>
      Object.keys(await clients[language].split(count, { target, headers: { 'x-user': 'ann' } })).sort();
    const consistentHash = { httpHeaderName: 'x-user' };
    const policies = [
      { simple: 'LEAST_REQUEST' },
      { simple: 'RANDOM' },
      { consistentHash: { ...consistentHash, maglev: {} } },
      { simple: 'ROUND_ROBIN' },
    ];
    const failures = await failuresDuring(async () => {
      for (const loadBalancer of policies.slice(0, sized({ short: 2, full: 4 }))) {
        writeConfig('rule.yaml', rule({ loadBalancer: { consistentHash } }));
        await eventually('calls are hashed', async () => (await backendsOfUser(15)).length === 1);
        writeConfig('rule.yaml', rule({ loadBalancer }));
        const isSpread = async (): Promise<boolean> => (await backendsOfUser(20)).join() === 'v1,v2';
        await eventually(`calls are balanced by ${JSON.stringify(loadBalancer)}`, isSpread);
      }
    });
    expect(failures).toEqual([]);
  });

  it('splits calls by the weights of localities, and loses no call while these change', async () => {
    const weighted = (v1: number, v2: number): string =>
      service(backends, ({ name }) => ({
        ...(name === 'v1' ? { locality: 'north/a', weight: v1 } : { locality: 'south/b', weight: v2 }),
      }));
    const failures = await failuresDuring(async () => {
      for (const [weightOfV1, weightOfV2, maxShare, minShare] of [
        [9, 1, 'v1', 'v2'],
        [1, 9, 'v2', 'v1'],
      ] as const) {
        writeConfig('echo.yaml', weighted(weightOfV1, weightOfV2));
        await eventually(`${maxShare} gets most calls`, async () => {
          const counts = await clients[language].split(60, { target });
          return counts[maxShare]! > 3 * counts[minShare]!;
        });
      }
      writeConfig('echo.yaml', service(backends));
    });
    expect(failures).toEqual([]);
  });

  it('loses no call while endpoints are added and removed', async () => {
    const failures = await failuresDuring(async () => {
      for (let change = 0; change < 4; change++) {
        const extraServer = await HealthServer.start(`extra-${change}`);
        writeConfig('echo.yaml', service([...backends, extraServer]));
        await eventually('the new endpoint is used', () => extraServer.calls > 0);
        writeConfig('echo.yaml', service(backends));
        await eventually('the endpoint is left', async () => {
          const { calls } = extraServer;
          await call();
          await call();
          await call();
          return extraServer.calls === calls;
        });
        await extraServer.drain();
      }
    });
    expect(failures).toEqual([]);
  });
});
