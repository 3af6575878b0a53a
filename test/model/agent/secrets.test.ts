/** A workload's secrets in virtual time: which secrets Envoy has and when, whatever the authority, Envoy and the control plane do. */
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { identityName, rootsName } from '../../../machines/agent/secrets/held-secrets.ts';
import { secretMachine } from '../../../machines/agent/secrets/secret.machine.ts';
import { renewalAtMs, waitMs } from '../../../machines/agent/secrets/secret-pace.ts';
import { secretsMachine } from '../../../machines/agent/secrets/secrets.machine.ts';
import { checkTrace } from '../../../src/debugger/check/check.ts';
import { loadDiagrams } from '../../../src/debugger/diagram/load.ts';
import { packageRoot } from '../../../src/runtime/package-root.ts';
import { sized } from '../../harness/size-of-run.ts';
import { hourMs, passTime, type SecretMachines, SecretsWorld } from '../../simulation/secrets-world.ts';
import { VirtualClock } from '../../simulation/virtual-clock.ts';

const diagrams = loadDiagrams(join(packageRoot(), 'machines/agent/sequences')).filter(({ file }) =>
  /\/secrets?\.mmd$/.test(file),
);
const minuteMs = 60_000;

function expectToConform(world: SecretsWorld): void {
  expect(world.violations).toEqual([]);
  expect(checkTrace(diagrams, world.records).departures).toEqual([]);
}

/** Times between attempts, in milliseconds. */
const pausesOf = (world: SecretsWorld, from = 0): number[] =>
  world.attempts
    .filter(({ atMs }) => atMs >= from)
    .flatMap(({ atMs }, index, all) => (index === 0 ? [] : [atMs - all[index - 1]!.atMs]));

/** Maximum number of all agents' attempts in one second. */
function busiestSecond(times: readonly number[]): number {
  const perSecond = new Map<number, number>();
  for (const time of times) perSecond.set(Math.floor(time / 1_000), (perSecond.get(Math.floor(time / 1_000)) ?? 0) + 1);
  return Math.max(0, ...perSecond.values());
}

describe('files of OUTPUT_CERTS', () => {
  const createWorld = (): SecretsWorld => {
    const world = new SecretsWorld({ writesOutput: true, outputError: 'ENOSPC' });
    world.passTime(1);
    return world;
  };
  const pausesOfWrites = ({ outputWrites: all }: SecretsWorld): number[] =>
    all.slice(1).map(({ atMs }, index) => atMs - all[index]!.atMs);

  test('are retried after 0.5 s if they cannot be written, and then with delays of up to 30 s', () => {
    const world = createWorld();
    world.passTime(130_000);
    expect(pausesOfWrites(world)).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
    expect(new Set(world.outputWrites.map(({ certificate }) => certificate))).toEqual(new Set(['certificate-1']));
    expect(world.events('output.failed')[0]).toMatchObject({ reason: 'ENOSPC' });
    world.outputError = undefined;
    world.passTime(30_000);
    const { length } = world.outputWrites;
    world.passTime(hourMs);
    expect(world.outputWrites).toHaveLength(length);
    expectToConform(world);
  });

  test('are written immediately with a new certificate after a failure, and a later failure starts with 0.5 s again', () => {
    const world = createWorld();
    world.passTime(20_000);
    const writesBefore = world.outputWrites.length;
    world.outputError = undefined;
    world.renewCertificate();
    world.passTime(1);
    expect(world.outputWrites.slice(writesBefore)).toMatchObject([{ certificate: 'certificate-2' }]);
    world.passTime(60_000);
    expect(world.outputWrites).toHaveLength(writesBefore + 1);
    world.outputError = 'EROFS';
    world.renewCertificate();
    world.passTime(600);
    expect(pausesOfWrites(world).slice(-1)).toEqual([500]);
    expectToConform(world);
  });
});

describe('a step of the wall clock', () => {
  const createWorld = (): SecretsWorld => {
    const world = new SecretsWorld();
    world.passTime(hourMs);
    expect(world.attempts).toHaveLength(1);
    return world;
  };

  test.each([
    ['forward, past the end of the certificate', 30 * hourMs],
    ['back, to before the certificate was obtained', -30 * hourMs],
  ])('renews the certificate immediately if it goes %s', (_, stepMs) => {
    const world = createWorld();
    world.stepClock(stepMs);
    world.passTime(1);
    expect(world.attempts).toHaveLength(2);
    expect(world.servedSecrets.get(identityName)).toBe('certificate-2');
    world.passTime(11 * hourMs);
    expect(world.attempts).toHaveLength(2);
    expectToConform(world);
  });

  test.each([minuteMs, -minuteMs, hourMs])('of %i ms does not renew a certificate that is not due', (stepMs) => {
    const world = createWorld();
    world.stepClock(stepMs);
    world.passTime(minuteMs);
    expect(world.attempts).toHaveLength(1);
    expectToConform(world);
  });

  test('withdraws an expired certificate without an authority until another certificate is signed', () => {
    const world = createWorld();
    world.respondTo = () => 'away';
    world.stepClock(30 * hourMs);
    world.passTime(1);
    expect(world.servedSecrets.has(identityName)).toBe(false);
    world.respondTo = () => 'signs';
    world.passTime(2 * minuteMs);
    expect(world.servedSecrets.get(identityName)).toBe('certificate-2');
    expectToConform(world);
  });

  test('ends the delay after a failure', () => {
    const world = createWorld();
    world.respondTo = () => 'away';
    world.renewCertificate();
    world.passTime(20 * minuteMs);
    const tries = world.attempts.length;
    world.stepClock(10 * hourMs);
    world.passTime(1);
    expect(world.attempts).toHaveLength(tries + 1);
    expectToConform(world);
  });
});

describe('renewal', () => {
  test.each([
    ['half of the lifetime', 0.5, 0, 30],
    ['a quarter of the lifetime', 0.25, 0, 45],
    ['three quarters of the lifetime', 0.75, 0, 15],
    ['the whole lifetime', 1, 0, 0],
    ['nothing of the lifetime', 0, 0, 60],
    ['a quarter of a lifetime that begins later', 0.25, 30, 75],
  ])('starts when %s remains', (_, ratio, from, minutes) => {
    const life = { fromMs: from * minuteMs, endsAtMs: (from + 60) * minuteMs };
    expect(renewalAtMs(life, { ratio, jitter: 0 }, 0.3)).toBe(minutes * minuteMs);
  });

  test('queries an authority with delays even if its certificates must be renewed immediately', () => {
    expect(waitMs(0, 1_000)).toBe(1_000);
    const world = new SecretsWorld();
    world.lifeMs = 1;
    world.passTime(10_000);
    expect(world.attempts.length).toBeLessThanOrEqual(12);
  });

  test("is randomly scheduled around half of each certificate's lifetime, even for two years", () => {
    const times = Array.from({ length: 200 }, (_, seed) => {
      const world = new SecretsWorld({ seed, records: false });
      world.passTime(13 * hourMs);
      expect(world.attempts).toHaveLength(2);
      return world.attempts[1]!.atMs / hourMs;
    });
    expect(Math.min(...times)).toBeGreaterThan(11.75);
    expect(Math.max(...times)).toBeLessThan(12.26);
    expect(Math.max(...times) - Math.min(...times)).toBeGreaterThan(0.4);
    const longWorld = new SecretsWorld({ records: false });
    longWorld.lifeMs = 2 * 365 * 24 * hourMs;
    // The first certificate has the default lifetime.
    longWorld.renewCertificate();
    longWorld.passTime(300 * 24 * hourMs);
    expect(longWorld.attempts).toHaveLength(2);
    longWorld.passTime(80 * 24 * hourMs);
    expect(longWorld.attempts).toHaveLength(3);
  });
});

describe('an authority that is unreachable for 24 hours', () => {
  function createUnreachableWorld(machines: Partial<SecretMachines> = {}): SecretsWorld {
    const world = new SecretsWorld({ machines });
    world.passTime(11 * hourMs);
    world.respondTo = () => 'away';
    return world;
  }

  test('does not invalidate the current certificate before it expires, and is followed by limited, jittered retries', () => {
    const world = createUnreachableWorld();
    world.passTime(13 * hourMs - 1);
    expect(world.servedSecrets.get('default')).toBe('certificate-1');
    const whileValid = pausesOf(world, hourMs);
    expect(Math.max(...whileValid)).toBeLessThanOrEqual(600_000);
    expect(Math.min(...whileValid)).toBeGreaterThanOrEqual(500);
    expect(world.attempts.length).toBeGreaterThan(40);
    expect(world.attempts.length).toBeLessThan(300);
    expect(new Set(whileValid).size).toBeGreaterThan(30);
    world.passTime(11 * hourMs);
    // A new Envoy gets no certificate, because the last one has expired.
    expect(world.servedSecrets.has('default')).toBe(false);
    expect(world.events('secret.expired')).toHaveLength(1);
    const pausesAfter = pausesOf(world, 24 * hourMs + 3 * minuteMs);
    expect(Math.max(...pausesAfter)).toBeLessThanOrEqual(60_000);
    expect(Math.min(...pausesAfter)).toBeGreaterThan(15_000);
    world.respondTo = () => 'signs';
    world.passTime(minuteMs);
    expect(world.servedSecrets.get('default')).toBe('certificate-2');
    expectToConform(world);
  });

  test('is queried soon after the certificate has expired, then with growing pauses', () => {
    const world = createUnreachableWorld();
    world.passTime(13 * hourMs + minuteMs);
    const pauses = pausesOf(world, 24 * hourMs);
    expect(pauses[0]).toBeLessThanOrEqual(750);
    expect(pauses.slice(0, 5).reduce((sum, pause) => sum + pause, 0)).toBeLessThan(10_000);
    expect(pauses.at(-1)).toBeGreaterThan(5_000);
    world.respondTo = () => 'signs';
    world.passTime(minuteMs);
    expect(world.servedSecrets.get('default')).toBe('certificate-2');
    expectToConform(world);
  });

  test('is called too often if retries have no delay, which this simulation detects', () => {
    const world = createUnreachableWorld({ secret: secretMachine.provide({ delays: { pause: 100 } }) });
    world.passTime(hourMs + 20 * minuteMs);
    expect(Math.min(...pausesOf(world, hourMs))).toBeLessThan(500);
  });
});

describe('hundreds of agents', () => {
  // The limit per second is a share of all agents; with fewer agents the variance is higher.
  const { agents, back, without } = sized({
    short: { agents: 150, back: 15, without: 25 },
    full: { agents: 1_000, back: 30, without: 60 },
  });

  const createWorlds = (clock: VirtualClock, word: 'signs' | 'away'): SecretsWorld[] =>
    Array.from({ length: agents }, (_, seed) => new SecretsWorld({ clock, seed, word, records: false }));

  test('spread their renewals over 10 min if they start together, a few per second', () => {
    const clock = new VirtualClock();
    const worlds = createWorlds(clock, 'signs');
    passTime(clock, 11.5 * hourMs);
    for (const world of worlds) world.respondTo = () => 'away';
    passTime(clock, 2.5 * hourMs);
    const backAt = clock.now();
    for (const world of worlds) world.respondTo = () => 'signs';
    passTime(clock, 10 * minuteMs);
    const times = worlds.flatMap(({ attempts }) => attempts.map(({ atMs }) => atMs)).filter((time) => time > 0);
    const since = times.filter((time) => time >= backAt);
    console.info(
      `busiest second: ${busiestSecond(times)} tries, ${busiestSecond(since)} after the return; ${times.length} in all`,
    );
    expect(worlds.filter(({ servedSecrets }) => servedSecrets.get('default') !== 'certificate-2')).toEqual([]);
    expect(since).toHaveLength(agents);
    expect(busiestSecond(times)).toBeLessThanOrEqual(back);
  });

  test('send few requests at a time after 15 min without a certificate, and all have one within 1 min', () => {
    const clock = new VirtualClock();
    const worlds = createWorlds(clock, 'away');
    passTime(clock, 15 * minuteMs);
    const from = clock.now();
    passTime(clock, 5 * minuteMs);
    const times = worlds.flatMap(({ attempts }) => attempts.map(({ atMs }) => atMs)).filter((time) => time >= from);
    console.info(`busiest second: ${busiestSecond(times)} tries of ${agents} agents without certificates`);
    expect(busiestSecond(times)).toBeLessThanOrEqual(without);
    for (const world of worlds) world.respondTo = () => 'signs';
    passTime(clock, minuteMs);
    expect(worlds.filter(({ servedSecrets }) => servedSecrets.get('default') !== 'certificate-1')).toEqual([]);
  });
});

describe('the credential for the authority', () => {
  test('is the token at first, then the certificate while it is valid, and never an expired one', () => {
    const world = new SecretsWorld();
    world.respondTo = (shownCredential) => (shownCredential === 'token' ? 'not known' : 'signs');
    world.passTime(12.5 * hourMs);
    expect(world.attempts.slice(1).map(({ shownCredential }) => shownCredential)).toEqual(['token', 'certificate']);
    expect(world.servedSecrets.get('default')).toBe('certificate-2');
    world.respondTo = () => 'not known';
    world.passTime(30 * hourMs);
    expect(world.attempts.at(-1)!.shownCredential).toBe('token');
    expectToConform(world);
  });

  test("an authority's retry delay is respected, with jitter for each agent", () => {
    const firsts = Array.from({ length: 50 }, (_, seed) => {
      const world = new SecretsWorld({ seed });
      world.pushbackMs = 90_000;
      world.respondTo = () => 'busy';
      world.passTime(12.5 * hourMs);
      const pauses = pausesOf(world, hourMs);
      expect(Math.min(...pauses)).toBeGreaterThanOrEqual(90_000);
      return pauses[0];
    });
    expect(new Set(firsts).size).toBeGreaterThan(45);
  });
});

test('a query without a response is given up and retried, and a late response has no effect', () => {
  const world = new SecretsWorld();
  world.authorityResponds = 'never';
  world.renewCertificate();
  world.authorityResponds = 'at once';
  world.renewCertificate();
  expect(world.servedSecrets.get('default')).toBe('certificate-3');
  world.respondLate();
  expect(world.servedSecrets.get('default')).toBe('certificate-3');
  world.respondTo = () => 'silent';
  world.renewCertificate();
  world.passTime(minuteMs);
  expect(world.events('secret.unavailable').length).toBeGreaterThan(0);
  expect(world.servedSecrets.get('default')).toBe('certificate-3');
  expect(world.violations).toEqual([]);
});

describe('a certificate with other roots', () => {
  function rotated(machines: Partial<SecretMachines> = {}): SecretsWorld {
    const world = new SecretsWorld({ machines });
    world.subscribeRoots();
    world.takeRoots();
    world.root = 'root-2';
    world.renewCertificate();
    return world;
  }

  test("waits for Envoy's acknowledgement", () => {
    const world = rotated();
    expect(world.servedSecrets).toEqual(
      new Map([
        ['ROOTCA', 'root-2+'],
        ['default', 'certificate-1'],
      ]),
    );
    world.takeRoots();
    expect(world.servedSecrets.get('default')).toBe('certificate-2');
    expectToConform(world);
  });

  test('is served after a timeout if Envoy hangs, and when an Envoy disconnects', () => {
    const hung = rotated();
    hung.passTime(10_000);
    expect(hung.servedSecrets.get('default')).toBe('certificate-2');
    const worldWithoutEnvoy = rotated();
    worldWithoutEnvoy.unsubscribeRoots();
    expect(worldWithoutEnvoy.servedSecrets.get('default')).toBe('certificate-2');
    for (const world of [hung, worldWithoutEnvoy]) expectToConform(world);
  });

  test('is replaced when the previous roots return', () => {
    const world = rotated();
    world.root = 'root-1';
    world.renewCertificate();
    expect(world.servedSecrets).toEqual(
      new Map([
        ['ROOTCA', 'root-1+'],
        ['default', 'certificate-1'],
      ]),
    );
    world.takeRoots();
    expect(world.servedSecrets.get('default')).toBe('certificate-3');
    expectToConform(world);
  });

  test('is no longer trusted after a change to control plane roots that do not include its root', () => {
    const world = rotated();
    world.takeRoots();
    world.bundles.set('both', ['root-1', 'root-2']).set('next', ['root-2']).set('others', ['root-3']);
    for (const [bundle, roots] of [
      ['both', '+both'],
      ['next', '+next'],
    ] as const) {
      world.bundle(bundle);
      world.takeRoots();
      expect(world.servedSecrets.get('ROOTCA')).toBe(roots);
    }
    expect(world.bundlesServed).toEqual(['both', 'next']);
    world.renewCertificate();
    world.takeRoots();
    expect(world.servedSecrets.get('ROOTCA')).toBe('root-2+next');
    expect(world.servedSecrets.get('default')).toBe('certificate-3');
    // Roots of another authority are added, whichever source reports them.
    world.bundle('others');
    expect(world.servedSecrets.get('ROOTCA')).toBe('root-2+others');
    expectToConform(world);
  });

  test('roots from the control plane are reported as trusted after Envoy accepts them', () => {
    const world = rotated();
    world.bundle('bundle-1');
    expect(world.bundlesServed).toEqual([]);
    world.takeRoots();
    expect(world.bundlesServed).toEqual(['bundle-1']);
    expect(world.servedSecrets.get('ROOTCA')).toBe('root-2+bundle-1');
    expectToConform(world);
  });
});

describe('the report of a served certificate', () => {
  test('is sent once for each certificate that Envoy acknowledges, because a signed one can fail to reach Envoy', () => {
    const world = new SecretsWorld();
    expect(world.certificatesServed).toEqual(['certificate-1']);
    world.requestCertificate();
    world.takeCertificate();
    world.renewCertificate();
    expect(world.servedSecrets.get('default')).toBe('certificate-2');
    expect(world.certificatesServed).toEqual(['certificate-1']);
    world.takeCertificate('certificate-1');
    expect(world.certificatesServed).toEqual(['certificate-1']);
    world.takeCertificate();
    world.takeCertificate();
    expect(world.certificatesServed).toEqual(['certificate-1', 'certificate-2']);
    expectToConform(world);
  });

  test('is not sent while the certificate waits for its roots', () => {
    const world = new SecretsWorld();
    world.subscribeRoots();
    world.takeRoots();
    world.root = 'root-2';
    world.renewCertificate();
    expect(world.certificatesServed).toEqual(['certificate-1']);
    world.takeRoots();
    expect(world.certificatesServed).toEqual(['certificate-1', 'certificate-2']);
    expectToConform(world);
  });

  test('is not sent if Envoy closed its stream, because Envoy keeps the previous certificate until its next request', () => {
    const world = new SecretsWorld();
    world.requestCertificate();
    world.takeCertificate();
    world.leaveCertificate();
    world.renewCertificate();
    expect(world.certificatesServed).toEqual(['certificate-1']);
    world.requestCertificate();
    expect(world.certificatesServed).toEqual(['certificate-1']);
    world.takeCertificate();
    expect(world.certificatesServed).toEqual(['certificate-1', 'certificate-2']);
    expectToConform(world);
  });
});

describe('a tainted root', () => {
  const taintRoot = (world: SecretsWorld): void => {
    world.root = 'root-2';
    world.bundle('bundle-1', ['root-1']);
  };

  test('invalidates certificates that it signed within 30 s, and keeps newer ones', () => {
    const world = new SecretsWorld();
    world.passTime(hourMs);
    taintRoot(world);
    world.passTime(31_000);
    expect(world.servedSecrets.get('default')).toBe('certificate-2');
    world.bundle('bundle-1', ['root-1']);
    world.bundle('bundle-2', []);
    world.passTime(10 * minuteMs);
    expect(world.attempts).toHaveLength(2);
    expectToConform(world);
  });

  test('has no effect if it signed no certificate in use', () => {
    const world = new SecretsWorld();
    world.bundle('bundle-1', ['root-0']);
    world.passTime(hourMs);
    expect(world.attempts).toHaveLength(1);
  });

  test('causes renewals with delays while it still signs certificates', () => {
    const world = new SecretsWorld();
    world.bundle('bundle-1', ['root-1']);
    world.passTime(5 * minuteMs);
    expect(world.attempts.length).toBeGreaterThan(6);
    expect(Math.min(...pausesOf(world, 1))).toBeGreaterThanOrEqual(500);
    world.root = 'root-2';
    world.passTime(31_000);
    const triesAfter = world.attempts.length;
    world.passTime(hourMs);
    expect(world.attempts).toHaveLength(triesAfter);
    expectToConform(world);
  });

  test('affects a certificate that is received after the root was marked as tainted', () => {
    const world = new SecretsWorld({ word: 'away' });
    world.bundle('bundle-1', ['root-1']);
    world.respondTo = () => 'signs';
    world.passTime(minuteMs);
    world.root = 'root-2';
    world.passTime(minuteMs);
    expect(world.attempts.length).toBeGreaterThan(2);
  });

  const renewals = (machines: Partial<SecretMachines> = {}): number[] => {
    const clock = new VirtualClock();
    const worlds = Array.from(
      { length: 300 },
      (_, seed) => new SecretsWorld({ clock, seed, records: false, machines }),
    );
    passTime(clock, hourMs);
    for (const world of worlds) taintRoot(world);
    passTime(clock, 31_000);
    expect(worlds.filter(({ servedSecrets }) => servedSecrets.get('default') !== 'certificate-2')).toEqual([]);
    return worlds.flatMap(({ attempts }) => attempts.map(({ atMs }) => atMs)).filter((time) => time >= hourMs);
  };

  test('makes hundreds of agents renew, about a thirtieth of them per second', () => {
    const times = renewals();
    console.info(`busiest second: ${busiestSecond(times)} of 300 agents`);
    expect(busiestSecond(times)).toBeLessThanOrEqual(25);
    const all = renewals({ secret: secretMachine.provide({ delays: { renewalDelay: 0 } }) });
    expect(busiestSecond(all)).toBe(300);
  });
});

describe('secrets with any events in any order', () => {
  const actions: Record<string, (world: SecretsWorld) => void> = {
    renew: (world) => world.renewCertificate(),
    'another root': (world) => {
      world.root = world.root === 'root-1' ? 'root-2' : 'root-1';
    },
    come: (world) => world.subscribeRoots(),
    take: (world) => world.takeRoots(),
    refuse: (world) => world.refuseRoots(),
    leave: (world) => world.unsubscribeRoots(),
    'ten seconds': (world) => world.passTime(10_000),
    bundle: (world) => world.bundle('bundle-1'),
    taint: (world) => world.bundle('bundle-1', [world.root === 'root-1' ? 'root-2' : 'root-1']),
    'the authority leaves or returns': (world) => {
      const isAway = world.respondTo('token') === 'away';
      world.respondTo = () => (isAway ? 'signs' : 'away');
    },
    'a day': (world) => world.passTime(25 * hourMs),
  };
  const names = Object.keys(actions);

  function violationsOf(schedule: readonly string[], machines: Partial<SecretMachines> = {}): string[] {
    const world = new SecretsWorld({ machines });
    for (const action of schedule) {
      actions[action]!(world);
      if (world.violations.length > 0) return world.violations;
    }
    // Once Envoy responds and the authority is available, the last certificate and roots are served.
    world.respondTo = () => 'signs';
    world.renewCertificate();
    world.takeRoots();
    world.passTime(10_000);
    const last = world
      .events('secret.obtained')
      .filter(({ name }) => name === 'default')
      .at(-1)!;
    if (world.servedSecrets.get('default') !== last.version) return [`${last.version} never reaches Envoy`];
    const { departures } = checkTrace(diagrams, world.records);
    return departures.map(({ kind, message }) => `${kind}: ${message.type}`);
  }

  /** Every schedule of `depth` steps. */
  function all(depth: number): string[][] {
    return depth === 0 ? [[]] : all(depth - 1).flatMap((schedule) => names.map((name) => [...schedule, name]));
  }

  const depth = sized({ short: 2, full: 3 });

  test(`satisfy the invariants in each of the ${names.length ** depth} schedules of ${depth} steps`, () => {
    for (const schedule of all(depth)) expect(violationsOf(schedule), schedule.join(', ')).toEqual([]);
  });

  test('satisfy the invariants in long schedules', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...names), { minLength: 4, maxLength: 25 }), (schedule) => {
        expect(violationsOf(schedule)).toEqual([]);
      }),
      { numRuns: sized({ short: 30, full: 150 }), seed: 7 },
    );
  });

  test.each<[string, Partial<SecretMachines>]>([
    [
      'hands a certificate out before its roots',
      { secrets: secretsMachine.provide({ guards: { awaitsRoots: () => false, canDistribute: () => true } }) },
    ],
    [
      'does not wait for Envoy’s acknowledgement',
      { secrets: secretsMachine.provide({ guards: { rootsAreTrusted: () => true } }) },
    ],
    ['serves an expired certificate', { secret: secretMachine.provide({ guards: { hasExpired: () => false } }) }],
    [
      'forgets a certificate that it holds back',
      { secrets: secretsMachine.provide({ actions: { serveDeferredCertificate: () => {} } }) },
    ],
  ])('the invariants detect a chart that %s', (fault, machines) => {
    const finding =
      fault === 'serves an expired certificate'
        ? showsWhatHasEnded(machines)
        : all(3).some((schedule) => violationsOf(schedule, machines).length > 0);
    expect(finding).toBe(true);
  });

  /** Whether Envoy has an expired certificate without an event about it. */
  function showsWhatHasEnded(machines: Partial<SecretMachines>): boolean {
    const world = new SecretsWorld({ machines });
    world.respondTo = () => 'not known';
    world.passTime(30 * hourMs);
    return world.violations.length > 0 || world.servedSecrets.has('default');
  }
});

describe('an agent that replaces another', () => {
  test('is ready when it has its certificate and roots, because Envoys request these immediately', () => {
    const world = new SecretsWorld({ obtainsFirst: true });
    world.passTime(10);
    expect(world.events('secrets.ready')).toHaveLength(1);
    expect([...world.servedSecrets.keys()].sort()).toEqual([identityName, rootsName].sort());
    expectToConform(world);
  });

  test('is not ready while the authority does not respond, unlike an agent without predecessor', () => {
    const word = 'silent' as const;
    const world = new SecretsWorld({ obtainsFirst: true, word });
    world.passTime(hourMs);
    expect(world.events('secrets.ready')).toEqual([]);
    const first = new SecretsWorld({ word });
    first.passTime(10);
    expect(first.events('secrets.ready')).toHaveLength(1);
  });
});
