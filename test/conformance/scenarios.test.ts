/**
 * Requirements of public xDS conformance harnesses for a discovery server, in all four
 * variants. Each test opens a separate target on free ports.
 */
import { test as base, describe, expect, vi } from 'vitest';
import { type ConformanceTarget, startConformanceTarget } from '../../src/discovery/conformance/conformance-target.ts';
import { silentLogger } from '../../src/runtime/output/log.ts';
import { type SotwStream, type TypeName, typeUrls } from '../ads-client.ts';
import { eventually } from '../harness/eventually.ts';
import { msWithoutQueueing } from '../harness/without-queueing.ts';
import { AdapterClient } from './adapter-client.ts';
import { HarnessClient, type Variant, variants } from './harness-client.ts';

// Scenarios mostly wait and share no state.
vi.setConfig({ maxConcurrency: 20 });

const node = 'test-id';
const wholeTypes: TypeName[] = ['CDS', 'LDS'];
const partialTypes: TypeName[] = ['RDS', 'EDS'];
const types: TypeName[] = [...wholeTypes, ...partialTypes];

class Scenario {
  readonly adapter: AdapterClient;
  readonly client: HarnessClient;
  readonly #target: ConformanceTarget;
  readonly #variant: Variant;
  readonly #clients: HarnessClient[] = [];

  constructor(target: ConformanceTarget, variant: Variant) {
    this.#target = target;
    this.#variant = variant;
    this.adapter = new AdapterClient(target.adapterPort, node);
    this.client = this.anotherClient();
  }

  anotherClient(): HarnessClient {
    const client = new HarnessClient(this.#target.port, this.#variant, node);
    this.#clients.push(client);
    return client;
  }

  /**
   * Unsubscribes from all other names and waits until the server has processed this. The request has no response, and the adapter's changes use
   * another connection.
   */
  async keepOnly(type: TypeName, names: string[]): Promise<void> {
    if (names.length === 0) this.client.unsubscribeFromAll(type);
    else this.client.subscribe(type, names);
    await eventually(`the server has read the unsubscription from ${type}`, () => {
      const watched = this.#target.connections().flatMap(({ watches }) => watches);
      const now = watched.filter(({ typeUrl }) => typeUrl === typeUrls[type]).map((watch) => watch.names.join());
      return now.join() === names.join();
    });
  }

  end(): void {
    for (const client of this.#clients) client.close();
    this.adapter.close();
    this.#target.close();
  }
}

type OpenScenario = (variant: Variant) => Promise<Scenario>;

/** `begin` opens a target, which is closed after its test. */
const test = base.extend<{ begin: OpenScenario }>({
  begin: async ({ task: _ }, use) => {
    const scenarios: Scenario[] = [];
    await use(async (variant) => {
      const target = await startConformanceTarget({ host: '127.0.0.1', port: 0, adapterPort: 0, logger: silentLogger });
      const scenario = new Scenario(target, variant);
      scenarios.push(scenario);
      return scenario;
    });
    for (const scenario of scenarios) scenario.end();
  },
});

/** Expects one response per subscription or change, and none for acknowledgements. */
async function expectNoMore({ client }: Scenario, type: TypeName): Promise<void> {
  expect(await client.unexpected(type)).toEqual([]);
  const { requests, responses } = client.counts();
  expect(responses).toBeLessThan(requests);
  expect(new Set(client.nonces()).size).toBe(responses);
}

describe.concurrent.each(variants.map((variant) => [variant.name, variant] as const))('%s', (_, variant) => {
  const isFullState = (type: TypeName): boolean => !variant.delta && wholeTypes.includes(type);

  describe.each(types)('%s', (type) => {
    test('a subscription gets one response with the requested resources', async ({ begin }) => {
      const s = await begin(variant);
      await s.adapter.setState('v1', { [type]: ['A', 'B', 'C'] });
      s.client.subscribe(type, ['A', 'B']);
      expect(await s.client.next(type)).toMatchObject({ version: 'v1', names: ['A', 'B'], removed: [] });
      await expectNoMore(s, type);
    });

    test('an update is pushed with its version and new content', async ({ begin }) => {
      const s = await begin(variant);
      await s.adapter.setState('v1', { [type]: ['A', 'B'] });
      s.client.subscribe(type, ['A', 'B']);
      const firstResponse = await s.client.next(type);
      await s.adapter.update(type, 'A', 'v2');
      const nextResponse = await s.client.next(type);
      expect(nextResponse).toMatchObject({ version: 'v2', names: isFullState(type) ? ['A', 'B'] : ['A'], removed: [] });
      expect(nextResponse.content.get('A')).not.toBe(firstResponse.content.get('A'));
      await s.adapter.update(type, 'A', 'v3');
      expect((await s.client.next(type)).content.get('A')).not.toBe(nextResponse.content.get('A'));
      await expectNoMore(s, type);
    });

    test('a missing resource is pushed when it is added, even under the same version', async ({ begin }) => {
      const s = await begin(variant);
      await s.adapter.setState('v1', { [type]: ['A'] });
      s.client.subscribe(type, ['A', 'B']);
      expect(await s.client.next(type)).toMatchObject({ version: 'v1', names: ['A'] });
      await s.adapter.add(type, 'B', 'v1');
      expect(await s.client.next(type)).toMatchObject({ version: 'v1', names: isFullState(type) ? ['A', 'B'] : ['B'] });
      await expectNoMore(s, type);
    });

    test('a node without a state is served as soon as the state is set', async ({ begin }) => {
      const s = await begin(variant);
      s.client.subscribe(type, ['A']);
      expect(await s.client.unexpected(type)).toEqual([]);
      await s.adapter.setState('v1', { [type]: ['A'] });
      expect(await s.client.next(type)).toMatchObject({ version: 'v1', names: ['A'] });
      await expectNoMore(s, type);
    });

    test('a subscription to an additional resource gets a response', async ({ begin }) => {
      const s = await begin(variant);
      await s.adapter.setState('v1', { [type]: ['A', 'B', 'C'] });
      s.client.subscribe(type, ['A']);
      await s.client.next(type);
      s.client.subscribe(type, ['A', 'B']);
      expect(await s.client.next(type)).toMatchObject({ version: 'v1', names: isFullState(type) ? ['A', 'B'] : ['B'] });
      await expectNoMore(s, type);
    });

    test('a client that unsubscribes from a resource gets no changes of it, but still gets those of other resources', async ({
      begin,
    }) => {
      const s = await begin(variant);
      await s.adapter.setState('v1', { [type]: ['A', 'B', 'C'] });
      s.client.subscribe(type, ['A', 'B', 'C']);
      await s.client.next(type);
      await s.keepOnly(type, ['A', 'B']);
      await s.adapter.update(type, 'C', 'v2');
      expect(await s.client.unexpected(type)).toEqual([]);
      await s.adapter.update(type, 'A', 'v3');
      expect(await s.client.next(type)).toMatchObject({ version: 'v3', names: isFullState(type) ? ['A', 'B'] : ['A'] });
      await s.adapter.remove(type, 'C', 'v3');
      await expectNoMore(s, type);
    });

    test('a client that unsubscribes from all resources gets no responses', async ({ begin }) => {
      const s = await begin(variant);
      await s.adapter.setState('v1', { [type]: ['A', 'B'] });
      s.client.subscribe(type, ['A', 'B']);
      await s.client.next(type);
      await s.keepOnly(type, []);
      await s.adapter.update(type, 'A', 'v2');
      await s.adapter.add(type, 'D', 'v3');
      await expectNoMore(s, type);
    });

    test('an unsubscription directly after an update has precedence', async ({ begin }) => {
      for (;;) {
        const s = await begin(variant);
        await s.adapter.setState('v1', { [type]: ['A'] });
        s.client.subscribe(type, ['A']);
        await s.client.next(type);
        const update = s.adapter.update(type, 'A', 'v2');
        await new Promise((resolve) => setTimeout(resolve, 60));
        await s.keepOnly(type, []);
        // An update waits 200 ms. If it was applied by now, perhaps before the unsubscription, its response precedes
        // that of another call.
        await s.adapter.setStateOf('another', 'v1', {});
        if (await isDone(update)) continue;
        await update;
        await expectNoMore(s, type);
        return;
      }
    });

    test.for([
      ['the current', 'v1'],
      ['an empty', ''],
    ] as const)('a removal with %s version is pushed', async ([, version], { begin }) => {
      const s = await begin(variant);
      await s.adapter.setState('v1', { [type]: ['A', 'B'] });
      s.client.subscribe(type, ['A', 'B']);
      await s.client.next(type);
      await s.adapter.remove(type, 'B', version);
      if (variant.delta) {
        expect(await s.client.next(type)).toMatchObject({ version: 'v1', names: [], removed: ['B'] });
      } else if (isFullState(type)) expect(await s.client.next(type)).toMatchObject({ version: 'v1', names: ['A'] });
      await expectNoMore(s, type);
    });

    test('a replaced state is pushed', async ({ begin }) => {
      const s = await begin(variant);
      await s.adapter.setState('v1', { [type]: ['A'] });
      s.client.subscribe(type, ['A', 'B']);
      await s.client.next(type);
      await s.adapter.setState('v2', { [type]: ['A', 'B'] });
      expect(await s.client.next(type)).toMatchObject({ version: 'v2', names: ['A', 'B'] });
      await expectNoMore(s, type);
    });

    test('a half-closed stream ends with OK', async ({ begin }) => {
      const s = await begin(variant);
      await s.adapter.setState('v1', { [type]: ['A'] });
      s.client.subscribe(type, ['A']);
      await s.client.next(type);
      s.client.stream(type).halfClose();
      expect((await s.client.stream(type).ended).code).toBe(0);
    });

    test('streams of a finished scenario do not affect the next one', async ({ begin }) => {
      const s = await begin(variant);
      await s.adapter.setState('v1', { [type]: ['A'] });
      const [cancelled, openClient] = [s.anotherClient(), s.anotherClient()];
      for (const client of [cancelled, openClient]) {
        client.subscribe(type, ['A']);
        await client.next(type);
      }
      cancelled.stream(type).cancel();
      await s.adapter.clearState();
      expect(await openClient.unexpected(type)).toEqual([]);

      await s.adapter.setState('v1', { [type]: ['A'] });
      s.client.subscribe(type, ['A']);
      expect(await s.client.next(type)).toMatchObject({ version: 'v1', names: ['A'] });
      await s.adapter.update(type, 'A', 'v2');
      expect(await s.client.next(type)).toMatchObject({ version: 'v2', names: ['A'] });
      await expectNoMore(s, type);
    });

    test('a delayed update of a cleared state does not change the next state', async ({ begin }) => {
      const s = await begin(variant);
      let update: ReturnType<typeof s.adapter.update>;
      let tookMs: number;
      do {
        await s.adapter.setState('v1', { [type]: ['A'] });
        const startedAt = performance.now();
        update = s.adapter.update(type, 'A', 'late');
        await s.adapter.clearState();
        tookMs = performance.now() - startedAt;
        // An update waits 200 ms: on a busy machine the state may not be cleared by then.
      } while (tookMs > 150 && (await isDone(update)));
      await s.adapter.setState('v1', { [type]: ['A'] });
      s.client.subscribe(type, ['A']);
      expect(await s.client.next(type)).toMatchObject({ version: 'v1' });
      expect((await update).success).toBe(false);
      await expectNoMore(s, type);
    });

    test('a request with an outdated nonce is ignored', async ({ begin }) => {
      const s = await begin(variant);
      await s.adapter.setState('v1', { [type]: ['A', 'B'] });
      s.client.subscribe(type, ['A']);
      const { nonce } = await s.client.next(type);
      await s.adapter.update(type, 'A', 'v2');
      await s.client.next(type);
      for (const stale of [nonce, 'no such nonce']) {
        if (variant.delta) s.client.deltaWithNonce(type, ['B'], stale);
        else s.client.requestWithNonce(type, ['A', 'B'], stale);
      }
      await expectNoMore(s, type);
      await s.adapter.update(type, 'B', 'v3');
      await expectNoMore(s, type);
    });
  });

  test('types have independent versions, and a change of one does not affect the others', async ({ begin }) => {
    const s = await begin(variant);
    await s.adapter.setState('v1', { CDS: ['A'], EDS: ['A'], LDS: ['A'], RDS: ['A'] });
    for (const type of types) {
      s.client.subscribe(type, ['A']);
      expect(await s.client.next(type)).toMatchObject({ type, version: 'v1', names: ['A'] });
    }
    await s.adapter.update('CDS', 'A', 'v2');
    expect(await s.client.next('CDS')).toMatchObject({ type: 'CDS', version: 'v2', names: ['A'] });
    for (const type of types) await expectNoMore(s, type);
    await s.adapter.update('EDS', 'A', 'v3');
    expect(await s.client.next('EDS')).toMatchObject({ type: 'EDS', version: 'v3', names: ['A'] });
    for (const type of types) await expectNoMore(s, type);
  });

  test('two streams of the same node are both served', async ({ begin }) => {
    const s = await begin(variant);
    await s.adapter.setState('v1', { CDS: ['A'] });
    const other = s.anotherClient();
    for (const client of [s.client, other]) {
      client.subscribe('CDS', ['A']);
      await client.next('CDS');
    }
    await s.adapter.update('CDS', 'A', 'v2');
    for (const client of [s.client, other]) expect(await client.next('CDS')).toMatchObject({ version: 'v2' });
  });
});

const sotw = variants.filter(({ delta }) => !delta).map((variant) => [variant.name, variant] as const);

describe.concurrent.each(sotw)('%s: wildcard subscriptions', (_, variant) => {
  test.for(wholeTypes)(
    'a first request of %s without names is a wildcard subscription to current and future resources',
    async (type, { begin }) => {
      const s = await begin(variant);
      await s.adapter.setState('v1', { [type]: ['A', 'B'] });
      s.client.subscribe(type, []);
      expect(await s.client.next(type)).toMatchObject({ version: 'v1', names: ['A', 'B'] });
      await s.adapter.update(type, 'B', 'v2');
      expect(await s.client.next(type)).toMatchObject({ version: 'v2', names: ['A', 'B'] });
      await s.adapter.add(type, 'C', 'v2');
      expect(await s.client.next(type)).toMatchObject({ version: 'v2', names: ['A', 'B', 'C'] });
      await s.adapter.remove(type, 'A', 'v2');
      expect(await s.client.next(type)).toMatchObject({ version: 'v2', names: ['B', 'C'] });
      await s.keepOnly(type, []);
      await s.adapter.update(type, 'B', 'v3');
      await expectNoMore(s, type);
    },
  );
});

test('sotw aggregated: a client that acknowledges one type with the nonce of another still gets changes of both', async ({
  begin,
}) => {
  const s = await begin(variants[1]!);
  await s.adapter.setState('v1', { CDS: ['A'], LDS: ['A'] });
  const stream = s.client.stream('CDS') as SotwStream;
  stream.onResponse = ({ nonce }) => s.client.requestWithNonce('CDS', ['A'], nonce);
  s.client.requestWithNonce('CDS', ['A'], '');
  await s.client.next('CDS');
  s.client.requestWithNonce('LDS', ['A'], '');
  expect(await s.client.next('LDS')).toMatchObject({ type: 'LDS', version: 'v1' });
  await s.adapter.update('LDS', 'A', 'v2');
  expect(await s.client.next('LDS')).toMatchObject({ type: 'LDS', version: 'v2' });
  await s.adapter.update('CDS', 'A', 'v3');
  expect(await s.client.next('CDS')).toMatchObject({ type: 'CDS', version: 'v3' });
  await expectNoMore(s, 'CDS');
});

test('sotw aggregated: a request with the nonce of another type is ignored', async ({ begin }) => {
  const s = await begin(variants[1]!);
  await s.adapter.setState('v1', { CDS: ['A', 'B'], LDS: ['A'] });
  s.client.subscribe('CDS', ['A']);
  await s.client.next('CDS');
  s.client.subscribe('LDS', ['A']);
  const { nonce } = await s.client.next('LDS');
  s.client.requestWithNonce('CDS', ['A', 'B'], nonce);
  s.client.requestWithNonce('CDS', [''], nonce);
  await expectNoMore(s, 'CDS');
  await s.adapter.update('CDS', 'A', 'v2');
  expect(await s.client.next('CDS')).toMatchObject({ version: 'v2', names: ['A'] });
});

describe.concurrent('the adapter', () => {
  const [variant] = variants;

  test('the adapter clears a state that does not exist', async ({ begin }) => {
    const s = await begin(variant!);
    expect((await s.adapter.clearState()).response).not.toBe('');
    await s.adapter.setState('v1', { CDS: ['A'] });
    await s.adapter.clearState();
    await s.adapter.clearState();
  });

  test('the adapter reports an update or removal of a missing resource as not applied, without an error', async ({
    begin,
  }) => {
    const s = await begin(variant!);
    expect((await s.adapter.update('CDS', 'A', 'v2')).success).toBe(false);
    expect((await s.adapter.remove('CDS', 'A', '')).success).toBe(false);
    await s.adapter.setState('v1', { LDS: ['A'] });
    expect((await s.adapter.update('LDS', 'B', 'v2')).success).toBe(false);
    expect((await s.adapter.remove('LDS', 'B', '')).success).toBe(false);
  });

  test('the adapter applies an update about 200 ms after the call and then responds', async ({ begin }) => {
    const s = await begin(variant!);
    await s.adapter.setState('v1', { CDS: ['A'] });
    const startedAt = performance.now();
    const updateMs = await msWithoutQueueing([process.pid], async () => {
      expect((await s.adapter.update('CDS', 'A', 'v2')).success).toBe(true);
    });
    expect(performance.now() - startedAt).toBeGreaterThan(180);
    expect(updateMs).toBeLessThan(1_000);
  });

  test('the adapter separates the states of nodes', async ({ begin }) => {
    const s = await begin(variant!);
    await s.adapter.setState('v1', { CDS: ['A'] });
    s.client.subscribe('CDS', ['A']);
    await s.client.next('CDS');
    await s.adapter.setStateOf('another', 'v2', { CDS: ['A'] });
    await expectNoMore(s, 'CDS');
  });

  test('the adapter reports a port in use with its address', async () => {
    const target = await startConformanceTarget({ host: '127.0.0.1', port: 0, adapterPort: 0, logger: silentLogger });
    const targetOptions = { host: '127.0.0.1', logger: silentLogger };
    try {
      await expect(
        startConformanceTarget({ ...targetOptions, port: target.port, adapterPort: 0 }),
      ).rejects.toMatchObject({
        code: 'PORT_IN_USE',
        message: expect.stringContaining(`127.0.0.1:${target.port}`),
      });
      await expect(
        startConformanceTarget({ ...targetOptions, port: 0, adapterPort: target.adapterPort }),
      ).rejects.toMatchObject({
        code: 'PORT_IN_USE',
        message: expect.stringContaining(`127.0.0.1:${target.adapterPort}`),
      });
    } finally {
      target.close();
    }
  });
});

/** Whether the update was already applied. */
async function isDone(update: Promise<{ readonly success: boolean }>): Promise<boolean> {
  const pending = new Promise<boolean>((resolve) => setTimeout(() => resolve(false), 0));
  return Promise.race([update.then(({ success }) => success), pending]);
}
