/** The control plane's statecharts, with scripted effects under a virtual clock. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import type { AnyStateMachine, AnyStateNode } from 'xstate';
import { trustBundlesMachine } from '../../machines/discovery/bundles/trust-bundles.machine.ts';
import { configControllerMachine } from '../../machines/discovery/config/config-controller.machine.ts';
import { meshConfigMachine } from '../../machines/discovery/config/mesh-config.machine.ts';
import { discoveryMachine } from '../../machines/discovery/discovery.machine.ts';
import { eventCatalogue } from '../../machines/discovery/event-catalogue.ts';
import { jwksMachine } from '../../machines/discovery/jwks/jwks.machine.ts';
import { nameServerMachine } from '../../machines/discovery/names/name-server.machine.ts';
import { pushMachine } from '../../machines/discovery/push/push.machine.ts';
import { pushQueueMachine } from '../../machines/discovery/push/push-queue.machine.ts';
import { serviceRegistryMachine } from '../../machines/discovery/registry/service-registry.machine.ts';
import { credentialDatesMachine } from '../../machines/discovery/secrets/credential-dates.machine.ts';
import { webhookServerMachine } from '../../machines/discovery/webhooks/webhook-server.machine.ts';
import { TraceChecker } from '../../src/debugger/check/check.ts';
import { loadDiagrams } from '../../src/debugger/diagram/load.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { DiscoveryWorld, problem, readingOf } from '../simulation/discovery-world.ts';
import { replayDifference } from '../simulation/replayed.ts';
import { handledTypes, leafStates } from './chart.ts';

const servingState = 'active.operating.serving';
const times = { leaseMs: 15_000, termMs: 10_000, retryMs: 2_000, requestLimitMs: 3_333 };
const electingSettings = {
  cluster: { server: 'https://cluster', resources: [], firstInformer: 1 },
  elections: {
    leaders: [
      { lease: 'duty', times },
      { lease: 'presence', times },
    ],
    presence: 'presence',
  },
};
const configChange = { key: 'VirtualService/shop/cart', event: 'update' } as const;
const serviceChange = { key: 'ServiceEntry/shop/cart', event: 'update' } as const;

/** Worlds of another file are checked in that file. */
beforeAll(() => {
  DiscoveryWorld.instances.splice(0);
});

afterAll(() => {
  const diagrams = loadDiagrams(join(packageRoot(), 'machines/discovery/sequences'));
  for (const world of DiscoveryWorld.instances.splice(0)) {
    expect(world.failure).toBeUndefined();
    const checker = new TraceChecker(diagrams);
    for (const record of world.records) checker.feed(record);
    // An effect that throws is a bug, and no diagram contains bugs.
    const deviations = checker.report().departures.filter(({ message }) => !message.type.startsWith('xstate.error.'));
    expect(deviations).toEqual([]);
    expect(replayDifference(world.records, discoveryMachine)).toBe('');
  }
});

describe('the start', () => {
  it('starts all parts in order, and then reports that it is ready', async () => {
    const world = await DiscoveryWorld.startServing();
    const stages = world.records.flatMap((r) => (r.kind === 'transition' && r.actor === 'discovery' ? [r.to] : []));
    expect(stages.map((stage) => stage.replace('active.operating.', ''))).toEqual([
      'preparing environment',
      'starting http',
      'loading mesh config',
      'loading networks',
      'initializing config controller',
      'initializing service controllers',
      'syncing configuration',
      'syncing registries',
      'fetching issuer keys',
      'building first push context',
      'opening xDS port',
      'serving',
    ]);
    expect(world.orders.map((order) => order.type)).toEqual(['http.open', 'ads.listen', 'readiness.began']);
  });

  it('runs an API server actor from before the first read until the drain, and an unreachable server delays only its readers', async () => {
    const world = await DiscoveryWorld.startServing({
      cluster: { server: 'https://cluster', resources: [], firstInformer: 1 },
    });
    const stateOf = () => world.discovery.getSnapshot().children['api-server-0']?.getSnapshot().value;
    const spawnedActors = world.records.flatMap((r) => (r.kind === 'spawn' ? [r.actor] : []));
    expect(spawnedActors.indexOf('api-server-0')).toBeLessThan(spawnedActors.indexOf('config-controller'));
    await world.passTime(60_000);
    expect(JSON.stringify(stateOf())).toMatch(/^\{"unreachable"/);
    expect(world.state()).toBe(servingState);
    world.sendFrom('discovery/signals', { type: 'signal.received', signal: 'SIGTERM' });
    await world.settle();
    expect(world.discovery.getSnapshot().children['api-server-0']).toBeUndefined();
    expect(world.records.some((r) => r.kind === 'stop' && r.actor === 'api-server-0')).toBe(true);
  });

  it('makes this replica a candidate for elected writes only once it serves', async () => {
    const world = new DiscoveryWorld(electingSettings, { buildsAtOnce: false });
    await world.passTime(60_000);
    expect(world.leases.filter((one) => one.includes('duty'))).toEqual([]);
    world.builds[0]!.finish();
    await world.settle();
    expect(world.state()).toBe(servingState);
    expect(world.leases.filter((one) => one.includes('duty'))).toEqual(['claim duty']);
  });

  it('writes the presence Lease before it opens ports for proxies, and renews the Lease during the start', async () => {
    const world = new DiscoveryWorld(electingSettings, { buildsAtOnce: false });
    await world.passTime(3_000);
    expect(world.leases).toEqual(['claim presence', 'renew presence']);
    expect(world.orders.map(({ type }) => type)).not.toContain('ads.listen');
  });

  it('opens the ports even if the API server refuses the presence Lease', async () => {
    const world = new DiscoveryWorld(electingSettings);
    world.leaseResult = { outcome: 'failed', reason: 'forbidden', retryAfterMs: 0, draw: 0 };
    await world.settle();
    expect(world.state()).toBe(servingState);
  });

  it('waits at most 5 s for the presence Lease', async () => {
    const world = new DiscoveryWorld({
      ...electingSettings,
      elections: {
        leaders: [{ lease: 'presence', times: { ...times, requestLimitMs: 60_000 } }],
        presence: 'presence',
      },
      secure: true,
    });
    world.leaseResult = new Promise<never>(() => {});
    await world.passTime(4_999);
    expect(world.state()).toBe('active.operating.announcing replica');
    expect(world.orders.map(({ type }) => type)).not.toContain('ads.listen');
    await world.passTime(1);
    expect(world.state()).toBe(servingState);
  });

  it('is aborted in order by a stop while it waits for the presence Lease', async () => {
    const world = new DiscoveryWorld(electingSettings);
    world.leaseResult = new Promise<never>(() => {});
    await world.settle();
    expect(world.state()).toBe('active.operating.announcing replica');
    world.sendFrom('discovery/signals', { type: 'signal.received', signal: 'SIGTERM' });
    await world.passTime(20_000);
    expect(world.discovery.getSnapshot().status).toBe('done');
  });

  it('prepares certificates and authentication, and opens the TLS port before the plaintext port', async () => {
    const world = await DiscoveryWorld.startServing({ secure: true });
    expect(world.preparedStages).toEqual([
      'environment',
      'config-sources',
      'registries',
      'server-certificates',
      'authenticators',
    ]);
    expect(world.orders.flatMap(({ type, port }) => (type === 'ads.listen' ? [port] : []))).toEqual([
      'secure',
      'plaintext',
    ]);
  });

  it('reports that no clients are served until the first context is built', async () => {
    const world = new DiscoveryWorld({ secure: true }, { buildsAtOnce: false });
    await world.passTime(60_000);
    expect(world.state()).toBe('active.operating.building first push context');
    expect(world.orders.map(({ type }) => type)).toEqual(['http.open']);
    world.builds[0]!.finish();
    await world.settle();
    expect(world.orders.map(({ type }) => type)).toEqual(['http.open', 'ads.listen', 'ads.listen', 'readiness.began']);
  });

  it('includes earlier changes in the first context', async () => {
    const world = new DiscoveryWorld({}, { buildsAtOnce: false });
    while (world.state() !== 'active.operating.syncing configuration') await Promise.resolve();
    world.settings.mesh = { outcome: 'valid', version: 'm2' };
    world.sendFrom('mesh-config/files', { type: 'files.changed', path: 'mesh' });
    world.directory = readingOf();
    await world.settle();
    world.builds[0]!.finish();
    await world.settle();
    expect(world.state()).toBe(servingState);
    expect(world.events('context.built')).toMatchObject([{ updates: 0 }]);
    // The file is read again without a pending wait: it is an update after the first context.
    await world.passTime(200);
    expect(world.builds).toHaveLength(2);
  });

  it('opens /ready before it reads the configuration, and the xDS ports last', async () => {
    const world = await DiscoveryWorld.startServing();
    const messages = world.messages();
    const at = (message: string): number => messages.indexOf(message);
    expect(at('discovery/http → discovery: http.listening')).toBeLessThan(
      at('discovery → config-controller: configs.load'),
    );
    expect(at('push → discovery: context.built')).toBeLessThan(at('discovery → discovery/ads-server: ads.listen'));
  });

  it('uses the defaults and reports the reason if the first mesh configuration is invalid', async () => {
    const invalidSettings = { outcome: 'invalid', defaults: 'built-in', problems: [problem('no number')] } as const;
    const world = new DiscoveryWorld(
      {},
      {
        settings: {
          mesh: { ...invalidSettings, problems: [...invalidSettings.problems] },
          networks: { outcome: 'absent', defaults: 'built-in' },
        },
      },
    );
    await world.settle();
    expect(world.state()).toBe(servingState);
    expect(world.events('settings.rejected')).toMatchObject([{ name: 'mesh', problems: [{ message: 'no number' }] }]);
    expect(world.events('settings.loaded')[0]).toMatchObject({ origin: 'defaults', version: 'built-in' });
  });

  it('fails with a reason if the configuration directory is missing', async () => {
    const world = new DiscoveryWorld(
      {},
      { directory: { outcome: 'missing', problems: [problem('no such directory')] } },
    );
    await world.settle();
    expect(world.output()).toEqual({ exitCode: 1, trouble: ['configuration: routes.yaml: no such directory'] });
  });

  it('retries a source whose first read is interrupted, and reports this', async () => {
    const world = new DiscoveryWorld({}, { directory: new Error('connection refused') });
    await world.passTime(6_999);
    expect(world.state()).toBe('active.operating.syncing configuration');
    expect(world.events('configs.rejected')).toHaveLength(3);
    expect(world.events('configs.rejected')[0]).toMatchObject({ problems: [{ message: 'connection refused' }] });
    world.directory = readingOf();
    await world.passTime(1);
    expect(world.state()).toBe(servingState);
  });

  it('does not require a configuration directory', async () => {
    const world = new DiscoveryWorld();
    world.sources = [];
    await world.settle();
    expect(world.state()).toBe(servingState);
  });

  it.each([
    ['environment', 'environment'],
    ['config-sources', 'configuration sources'],
    ['registries', 'service registries'],
    ['server-certificates', 'server certificates'],
    ['authenticators', 'authenticators'],
  ] as const)('fails with a reason and closes open ports if the stage %s fails', async (stage, message) => {
    const world = new DiscoveryWorld({ secure: true }, { failingStages: { [stage]: 'not to be had' } });
    await world.settle();
    expect(world.output()).toEqual({ exitCode: 1, trouble: [`${message}: not to be had`] });
    expect(world.pendingWork()).toEqual([]);
    expect(world.orders.some(({ type }) => type === 'readiness.began' || type === 'ads.listen')).toBe(false);
  });

  it.each([
    [
      'an HTTP port is in use',
      { http: { type: 'http.failed', reason: '127.0.0.1:8080 is in use' } },
      /HTTP server: .* in use/,
    ],
    [
      'the xDS port is in use',
      { ads: { type: 'ads.failed', reason: '127.0.0.1:15010 is in use' } },
      /xDS server: .* in use/,
    ],
    ['an internal error prevents computing the services', { services: new Error('a bug') }, /services: a bug/],
    [
      'an internal error prevents reading the configuration',
      { joinResult: new Error('a bug') },
      /configuration: a bug/,
    ],
  ] as const)('fails with a reason if %s', async (_, script, reason) => {
    const world = new DiscoveryWorld({}, script as Partial<DiscoveryWorld>);
    await world.settle();
    expect(world.state()).toBe('stopped');
    expect(world.output()).toMatchObject({ exitCode: 1, trouble: [expect.stringMatching(reason)] });
    expect(world.pendingWork()).toEqual([]);
  });

  it('fails with a reason if an internal error prevents reading the mesh configuration', async () => {
    const world = new DiscoveryWorld({}, { settings: { mesh: new Error('a bug'), networks: new Error('a bug') } });
    await world.settle();
    expect(world.output()).toMatchObject({ exitCode: 1, trouble: ['mesh configuration: a bug'] });
  });

  it('fails with a reason if the first context cannot be built', async () => {
    const world = new DiscoveryWorld({}, { buildsAtOnce: false });
    await world.settle();
    world.builds[0]!.fail('a bug');
    await world.settle();
    expect(world.output()).toMatchObject({ exitCode: 1, trouble: ['first push context: a bug'] });
  });

  it('fails with a reason if a preparation stage has an internal error', async () => {
    const world = new DiscoveryWorld({}, { failingStages: { registries: new Error('a bug') } });
    await world.settle();
    expect(world.output()).toEqual({ exitCode: 1, trouble: ['service registries: a bug'] });
    expect(world.pendingWork()).toEqual([]);
  });

  it('reports which of the two xDS ports is unavailable', async () => {
    const world = new DiscoveryWorld({ secure: true }, { ads: { type: 'ads.failed', reason: 'in use' } });
    await world.settle();
    expect(world.output()).toEqual({ exitCode: 1, trouble: ['secure xDS server: in use'] });
    expect(world.pendingWork()).toEqual([]);
  });

  it('is aborted in order by a stop at any stage', async () => {
    const stoppedStates = new Set<string>();
    for (let ticks = 0; !stoppedStates.has(servingState); ticks++) {
      const world = new DiscoveryWorld({ secure: true });
      for (let tick = 0; tick < ticks; tick++) await Promise.resolve();
      stoppedStates.add(world.state());
      world.signal();
      await world.settle();
      expect([world.output(), world.pendingWork()]).toEqual([{ exitCode: 0, trouble: [] }, []]);
      expect(ticks).toBeLessThan(100);
    }
    // States that wait for an event; other states end immediately.
    expect([...stoppedStates].map((state) => state.replace('active.operating.', ''))).toEqual([
      'preparing environment',
      'loading mesh config',
      'loading networks',
      'initializing config controller',
      'initializing service controllers',
      'reading server certificates',
      'initializing authenticators',
      'syncing configuration',
      'syncing registries',
      'fetching issuer keys',
      'building first push context',
      'serving',
    ]);
  });
});

describe('the leadership of this replica', () => {
  it('is released during a stop, while streams end', async () => {
    const world = await DiscoveryWorld.startServing(electingSettings);
    world.drains = false;
    world.signal();
    await world.settle();
    expect(world.leases.slice(-2).sort()).toEqual(['release duty', 'release presence']);
    expect(world.state()).toBe('active.draining.closing streams');
  });

  it('is released before the process exits, even if no other work delays the exit', async () => {
    const world = await DiscoveryWorld.startServing(electingSettings);
    world.signal();
    await world.settle();
    expect(world.leases.slice(-2).sort()).toEqual(['release duty', 'release presence']);
    expect(world.output()).toEqual({ exitCode: 0, trouble: [] });
  });

  it('delays a stop by at most 3 s if a pending request gets no response', async () => {
    const world = await DiscoveryWorld.startServing(electingSettings);
    world.hangs = true;
    world.signal();
    await world.passTime(2_999);
    expect(world.output()).toBeUndefined();
    await world.passTime(1);
    expect(world.output()).toEqual({ exitCode: 0, trouble: [] });
    expect(world.leases).toEqual(['claim presence', 'claim duty']);
  });

  it('is neither acquired nor released by a process that exits before it serves', async () => {
    const world = new DiscoveryWorld(electingSettings, { buildsAtOnce: false });
    await world.settle();
    world.signal();
    await world.settle();
    expect(world.output()).toEqual({ exitCode: 0, trouble: [] });
    expect(world.leases).toEqual(['claim presence', 'release presence']);
  });
});

describe('mesh-wide settings', () => {
  const rewrite = (world: DiscoveryWorld): void =>
    world.sendFrom('mesh-config/files', { type: 'files.changed', path: 'mesh' });

  it('update every client when they change, 100 ms after the first event', async () => {
    const world = await DiscoveryWorld.startServing();
    world.settings.mesh = { outcome: 'valid', version: 'm2' };
    rewrite(world);
    await world.passTime(60);
    rewrite(world);
    await world.passTime(39);
    expect(world.events('settings.changed')).toEqual([]);
    await world.passTime(1);
    expect(world.events('settings.changed')).toMatchObject([{ name: 'mesh', version: 'm2' }]);
    expect(world.appliedVersions.at(-1)).toBe('m2');
    await world.passTime(100);
    expect(world.events('clients.push')).toMatchObject([{ forced: true }]);
  });

  it('cause no push if the content of the file is unchanged', async () => {
    const world = await DiscoveryWorld.startServing();
    world.settings.mesh = { outcome: 'valid', version: 'built-in' };
    rewrite(world);
    await world.passTime(1_000);
    expect(world.events('settings.changed')).toEqual([]);
    expect(world.events('push.request')).toEqual([]);
  });

  it('report the errors of an invalid file once until the file is valid again', async () => {
    const world = await DiscoveryWorld.startServing();
    const invalidSettings = { outcome: 'invalid', defaults: 'built-in', problems: [problem('broken')] } as const;
    const readings = [
      invalidSettings,
      invalidSettings,
      { outcome: 'valid', version: 'built-in' } as const,
      invalidSettings,
    ];
    const reportedCounts: number[] = [];
    for (const reading of readings) {
      world.settings.mesh = 'problems' in reading ? { ...reading, problems: [...reading.problems] } : reading;
      rewrite(world);
      await world.passTime(100);
      reportedCounts.push(world.events('settings.rejected').length);
    }
    expect(reportedCounts).toEqual([1, 1, 1, 2]);
  });

  it('are kept if the file is invalid or removed, and change when it is corrected', async () => {
    const world = await DiscoveryWorld.startServing();
    world.settings.mesh = { outcome: 'invalid', defaults: 'built-in', problems: [problem('broken')] };
    rewrite(world);
    await world.passTime(100);
    world.settings.mesh = { outcome: 'absent', defaults: 'built-in' };
    rewrite(world);
    await world.passTime(100);
    world.settings.mesh = new Error('input/output error');
    rewrite(world);
    await world.passTime(100);
    expect(world.events('settings.rejected').map((event) => event.problems[0].message)).toEqual([
      'broken',
      'input/output error',
    ]);
    expect(world.events('settings.changed')).toEqual([]);
    world.settings.mesh = { outcome: 'valid', version: 'm2' };
    rewrite(world);
    await world.passTime(100);
    expect(world.events('settings.changed')).toHaveLength(1);
  });

  it('are read again after an interrupted read', async () => {
    const world = await DiscoveryWorld.startServing();
    world.settings.mesh = new Error('too many open files');
    rewrite(world);
    await world.passTime(100);
    world.settings.mesh = { outcome: 'valid', version: 'm2' };
    await world.passTime(1_000);
    expect(world.events('settings.changed')).toHaveLength(1);
  });

  it('name networks as the push reason when networks change', async () => {
    const world = await DiscoveryWorld.startServing();
    world.settings.networks = { outcome: 'valid', version: 'n2' };
    world.sendFrom('mesh-networks/files', { type: 'files.changed', path: 'meshNetworks' });
    await world.passTime(100);
    expect(world.events('push.request')).toMatchObject([{ forced: true, reasons: { networks: 1 } }]);
  });
});

describe('the configuration', () => {
  it('is read 20 ms after the first event of a batch if events continue', async () => {
    const world = await DiscoveryWorld.startServing();
    world.directory = readingOf([configChange]);
    for (let ms = 0; ms < 20; ms += 4) {
      expect(world.events('push.request')).toEqual([]);
      world.sendFrom('config-source-1/watch', { type: 'source.changed', place: `${ms}.yaml` });
      await world.passTime(4);
    }
    expect(world.events('push.request')).toMatchObject([{ configs: [configChange.key], reasons: { config: 1 } }]);
  });

  it('is read again after changes during a read', async () => {
    const world = new DiscoveryWorld();
    // The first read is in progress: its promise is still pending.
    while (world.state() !== 'active.operating.syncing configuration') await Promise.resolve();
    world.sendFrom('config-source-1/watch', { type: 'source.changed', place: 'late.yaml' });
    await world.settle();
    expect(world.state()).toBe(servingState);
    world.directory = readingOf([configChange]);
    await world.passTime(20);
    expect(world.events('push.request')).toHaveLength(1);
  });

  it('is pushed after the services that changed at the same time are computed', async () => {
    const world = await DiscoveryWorld.startServing();
    await world.changeDirectory(readingOf([configChange, serviceChange]));
    expect(world.events('configs.changed')).toMatchObject([
      { changes: [serviceChange], alongside: [configChange.key] },
    ]);
    expect(world.events('push.request')).toMatchObject([{ configs: [configChange.key], reasons: { config: 1 } }]);
    expect(world.records.findLast((r) => r.kind === 'event' && r.event.type === 'push.request')).toMatchObject({
      from: 'service-registry',
    });
  });

  it('is reported as invalid without a push if no object changed', async () => {
    const world = await DiscoveryWorld.startServing();
    await world.changeDirectory(readingOf([], [problem('unknown field')]));
    expect(world.events('configs.rejected')).toMatchObject([{ problems: [{ message: 'unknown field' }] }]);
    await world.changeDirectory({ ...readingOf(), outcome: 'read', recovered: ['routes.yaml'] } as never);
    expect(world.events('config.recovered')).toMatchObject([{ places: ['routes.yaml'] }]);
    expect(world.events('push.request')).toEqual([]);
    expect(world.state()).toBe(servingState);
  });

  it('is kept if the directory is removed or unreadable', async () => {
    const world = await DiscoveryWorld.startServing();
    await world.changeDirectory({ outcome: 'missing', problems: [problem('gone')] });
    await world.changeDirectory(new Error('input/output error'));
    expect(world.events('configs.rejected').map((event) => event.problems[0].message)).toEqual([
      'gone',
      'input/output error',
    ]);
    expect(world.events('push.request')).toEqual([]);
    await world.changeDirectory(readingOf([configChange]));
    expect(world.events('push.request')).toHaveLength(1);
  });
});

describe('the service registry', () => {
  const service = 'ServiceEntry/shop/cart.example.com';
  const endpoints = 'Endpoints/shop/cart.example.com';
  const counts = { services: 2, endpoints: 4 };

  it.each([
    [
      'a service',
      { changedServices: [service], changedEndpoints: [] },
      { configs: [service], reasons: { service: 1 } },
    ],
    [
      'only an endpoint',
      { changedServices: [], changedEndpoints: [endpoints] },
      { configs: [endpoints], reasons: { endpoint: 1 } },
    ],
    [
      'both a service and an endpoint',
      { changedServices: [service], changedEndpoints: [endpoints] },
      { configs: [service, endpoints], reasons: { service: 1, endpoint: 1 } },
    ],
  ] as const)('requests a push if %s changed', async (_, result, expected) => {
    const world = await DiscoveryWorld.startServing();
    world.services = {
      ...counts,
      changedServices: [...result.changedServices],
      changedEndpoints: [...result.changedEndpoints],
    };
    await world.changeDirectory(readingOf([serviceChange]));
    expect(world.events('push.request')).toEqual([{ type: 'push.request', forced: false, ...expected }]);
  });

  it('reports the reasons of a push as the registries count them', async () => {
    const world = await DiscoveryWorld.startServing();
    const reasons = { headlessendpoint: 2, proxy: 1 };
    world.services = { ...counts, changedServices: [service], changedEndpoints: [], reasons };
    await world.changeDirectory(readingOf([serviceChange]));
    world.services = { ...counts, changedServices: [], changedEndpoints: [], forced: true, reasons: { networks: 1 } };
    await world.changeDirectory(readingOf([serviceChange]));
    expect(world.events('push.request')).toMatchObject([{ reasons }, { forced: true, reasons: { networks: 1 } }]);
  });

  it('requests no push for a change that affects no client', async () => {
    const world = await DiscoveryWorld.startServing();
    await world.changeDirectory(readingOf([serviceChange]));
    expect(world.events('push.request')).toEqual([]);
  });

  it('pushes objects that changed together with services, even if these cannot be computed', async () => {
    const world = await DiscoveryWorld.startServing();
    world.services = new Error('a bug');
    await world.changeDirectory(readingOf([configChange, serviceChange]));
    expect(world.events('services.failed')).toMatchObject([{ reason: 'a bug' }]);
    expect(world.events('push.request')).toMatchObject([{ configs: [configChange.key] }]);
  });

  it('keeps the last services if a computation fails, and includes the missed changes in the next one', async () => {
    const world = await DiscoveryWorld.startServing();
    world.services = new Error('a bug');
    await world.changeDirectory(readingOf([serviceChange]));
    expect(world.events('services.failed')).toMatchObject([{ reason: 'a bug' }]);
    expect(world.state()).toBe(servingState);
    world.services = { ...counts, changedServices: [service], changedEndpoints: [] };
    await world.changeDirectory(readingOf([serviceChange]));
    expect(world.events('push.request')).toMatchObject([{ configs: [service] }]);
  });
});

describe('a stop', () => {
  it('drains streams, then HTTP, and exits with 0', async () => {
    const world = await DiscoveryWorld.startServing();
    world.signal('SIGINT');
    await world.settle();
    expect(world.orders.slice(3).map((order) => order.type)).toEqual(['readiness.ended', 'ads.drain', 'http.close']);
    expect(world.output()).toEqual({ exitCode: 0, trouble: [] });
  });

  it('takes no longer than the shutdown time', async () => {
    const world = await DiscoveryWorld.startServing();
    world.drains = false;
    world.signal();
    await world.passTime(9_999);
    expect(world.output()).toBeUndefined();
    await world.passTime(1);
    expect(world.output()).toEqual({ exitCode: 0, trouble: [] });
  });

  it('is immediate after a second signal', async () => {
    const world = await DiscoveryWorld.startServing();
    world.drains = false;
    world.signal();
    await world.passTime(10);
    world.signal();
    await world.settle();
    expect(world.output()).toEqual({ exitCode: 0, trouble: [] });
  });

  it('exits with 1 if a server fails while serving', async () => {
    const world = await DiscoveryWorld.startServing();
    world.sendFrom('discovery/ads-server', { type: 'ads.failed', reason: 'the listener broke' });
    await world.settle();
    expect(world.output()).toEqual({ exitCode: 1, trouble: ['xDS server: the listener broke'] });
  });

  it('closes the sources first, so that later file changes have no effect', async () => {
    const world = await DiscoveryWorld.startServing();
    world.drains = false;
    world.signal();
    await world.settle();
    expect(() => world.sendFrom('config-source-1/watch', { type: 'source.changed', place: 'x' })).toThrow(
      'is not running',
    );
  });
});

it('a forced push request pushes everything to every client', async () => {
  const world = await DiscoveryWorld.startServing();
  world.sendFrom('discovery/http', { type: 'full-push.requested' });
  await world.passTime(100);
  expect(world.events('push.request')).toMatchObject([{ forced: true, reasons: { debug: 1 } }]);
  expect(world.events('clients.push')).toHaveLength(1);
});

/** Every state handles, or explicitly ignores, every event that its peers may send it. */
describe('every chart state', () => {
  const machines: [string, AnyStateMachine][] = [
    ['discovery', discoveryMachine],
    ['mesh-config', meshConfigMachine],
    ['config-controller', configControllerMachine],
    ['service-registry', serviceRegistryMachine],
    ['jwks', jwksMachine],
    ['trust-bundles', trustBundlesMachine],
    ['credential-dates', credentialDatesMachine],
    ['name-server', nameServerMachine],
    ['webhook-server', webhookServerMachine],
    ['push', pushMachine],
    ['push-queue', pushQueueMachine],
  ];
  const cases = machines.flatMap(([actor, machine]) =>
    leafStates(machine.root).map((node) => [`${actor}: ${node.path.join('.')}`, actor, node] as const),
  );

  test.each(cases)('handles or ignores each event that it can receive: %s', (_, actor, node) => {
    const spoken = handledTypes(node);
    const sentTypes = eventCatalogue
      .filter(({ to, from }) => to === actor && livesIn(from, actor, node))
      .map(({ type }) => type)
      .filter((type) => type.includes('.'));
    expect([...new Set(sentTypes)].filter((type) => !spoken.has(type))).toEqual([]);
  });

  /** Children run in the states that invoke them; only then can they send. */
  function livesIn(from: string, actor: string, node: AnyStateNode): boolean {
    const child = from.startsWith(`${actor}/`) ? from.slice(actor.length + 1) : from;
    if (from === actor) return false;
    if (actor !== 'discovery' && !from.startsWith(`${actor}/`)) return true;
    for (let at: AnyStateNode | undefined = node; at !== undefined; at = at.parent) {
      if (at.invoke.some(({ id }) => id === child)) return true;
    }
    return false;
  }
});
