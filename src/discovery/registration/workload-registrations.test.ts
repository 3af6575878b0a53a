import { describe, expect, it } from 'vitest';
import type { WorkloadReport } from '../../../machines/discovery/registration/registration-protocol.ts';
import type { ObjectChange } from '../kubernetes/store/object-store.ts';
import type { GroupResult, ValidGroup } from './group-entry.ts';
import type { RegistrationRejection, WorkloadClaim } from './workload-claim.ts';
import {
  type RegistrationLimits,
  WorkloadRegistrations,
  type WorkloadRegistrationsOptions,
} from './workload-registrations.ts';

const group: ValidGroup = { name: 'vm', uid: 'uid', apiVersion: 'v1', spec: { template: { serviceAccount: 'vm' } } };

function claimOf(address = '10.0.0.1', overrides: Partial<WorkloadClaim> = {}): WorkloadClaim {
  const name = `vm-${address}`;
  return {
    ...{ entry: `shop/${name}`, namespace: 'shop', name, group: 'vm', serviceAccount: 'vm', address },
    ...{ network: '', locality: '', labels: {}, isProbed: false, ...overrides },
  };
}

/** Records reported events, such as `connected shop/vm-10.0.0.1`. */
function createRegistrations(
  groups: Record<string, GroupResult> = { 'shop/vm': { group } },
  limits: Partial<RegistrationLimits> = {},
  server: WorkloadRegistrationsOptions['server'] = { request: () => Promise.reject(new Error('nobody is asked')) },
) {
  const reports: string[] = [];
  let entriesChanged: (changes: readonly ObjectChange[]) => void = () => {};
  const registrations = new WorkloadRegistrations({
    server,
    groupOf: (namespace, name) => groups[`${namespace}/${name}`],
    onEntries: (listener) => {
      entriesChanged = listener;
    },
    controller: 'me',
    limits: { maxWorkloads: 3, maxOfAccount: 2, ...limits },
  });
  const report = ({ type, entry, ...details }: WorkloadReport): void => {
    const health = 'healthy' in details ? ` ${details.healthy ? 'healthy' : details.message}` : '';
    reports.push(`${type} ${entry}${health}`);
  };
  const stop = registrations.watch(report);
  return {
    registrations,
    reports,
    stop,
    report,
    change: (...changes: ObjectChange[]) => entriesChanged(changes),
  };
}

const entry = 'shop/vm-10.0.0.1';
const noop = (): void => {};

describe('connections of a registered workload', () => {
  it('are reported when the first connection opens and the last one closes', () => {
    const { registrations, reports } = createRegistrations();
    const one = registrations.connect(claimOf(), noop);
    const secondConnection = registrations.connect(claimOf(), () => {});
    one.disconnect();
    one.disconnect();
    expect(reports).toEqual([`workload.connected ${entry}`]);
    secondConnection.disconnect();
    expect(reports).toEqual([`workload.connected ${entry}`, `workload.disconnected ${entry}`]);
  });

  it('are reported to a new watcher if any exist', () => {
    const { registrations, reports, stop, report } = createRegistrations();
    stop();
    registrations.connect(claimOf(), noop);
    registrations.connect(claimOf('10.0.0.2'), noop).disconnect();
    registrations.watch(report);
    expect(reports).toEqual([`workload.connected ${entry}`]);
  });

  it('are all closed if the workload is rejected, ignoring connections that are already closed', () => {
    const { registrations } = createRegistrations();
    const turned: string[] = [];
    const recordRejection = (name: string) => (rejection: RegistrationRejection) =>
      void turned.push(`${name}: ${rejection.code} ${rejection.reason}`);
    registrations.connect(claimOf(), recordRejection('one'));
    registrations.connect(claimOf(), recordRejection('two')).disconnect();
    registrations.rejectWorkload(entry, 'it is not allowed');
    expect(turned).toEqual(['one: FAILED_PRECONDITION it is not allowed']);
  });
});

describe('registration of a workload', () => {
  it.each<[string, Record<string, GroupResult>, string]>([
    ['without a group', {}, 'FAILED_PRECONDITION'],
    ['if only another namespace has the group', { 'other/vm': { group } }, 'FAILED_PRECONDITION'],
    ['with an invalid group', { 'shop/vm': { problem: 'no template' } }, 'FAILED_PRECONDITION'],
    [
      'with a group of another service account',
      { 'shop/vm': { group: { ...group, spec: { template: { serviceAccount: 'admin' } } } } },
      'PERMISSION_DENIED',
    ],
  ])('is rejected %s', (_, groups, code) => {
    expect(createRegistrations(groups).registrations.rejectionOf(claimOf())?.code).toBe(code);
  });

  it('is accepted for any service account in the namespace if the group specifies none', () => {
    const openGroup = { group: { ...group, spec: { template: {} } } };
    expect(createRegistrations({ 'shop/vm': openGroup }).registrations.rejectionOf(claimOf())).toBeUndefined();
  });

  it('is rejected while the entry belongs to a connected workload of another service account', () => {
    const { registrations, reports } = createRegistrations({
      'shop/vm': { group: { ...group, spec: { template: {} } } },
    });
    const otherAccount = claimOf('10.0.0.1', { serviceAccount: 'stranger', labels: { app: 'another' } });
    const connection = registrations.connect(claimOf(), noop);
    expect(registrations.rejectionOf(otherAccount)?.code).toBe('PERMISSION_DENIED');
    expect(registrations.rejectionOf(claimOf())).toBeUndefined();
    connection.disconnect();
    expect(registrations.rejectionOf(otherAccount)).toBeUndefined();
    registrations.connect(otherAccount, noop);
    expect(registrations.rejectionOf(claimOf())?.code).toBe('PERMISSION_DENIED');
    expect(reports.at(-1)).toBe(`workload.connected ${entry}`);
  });

  it('is rejected if another group, address or network has the same entry name', () => {
    const groups = { 'shop/vm': { group }, 'shop/vm-10.0.0.1': { group } };
    const { registrations } = createRegistrations(groups);
    const one = claimOf('10.0.0.1', {
      entry: 'shop/vm-10.0.0.1-10.0.0.2',
      name: 'vm-10.0.0.1-10.0.0.2',
      network: '10.0.0.2',
    });
    registrations.connect(one, noop).disconnect();
    expect(registrations.rejectionOf(one)).toBeUndefined();
    const conflicting = [
      { group: 'vm-10.0.0.1', address: '10.0.0.2', network: '' },
      { address: '10.0.0.2' },
      { network: '' },
    ];
    for (const other of conflicting) {
      expect(registrations.rejectionOf({ ...one, ...other })?.code).toBe('FAILED_PRECONDITION');
    }
  });

  it('is rejected beyond the limit of an account or the total limit, but a known workload can reconnect', () => {
    const { registrations } = createRegistrations({ 'shop/vm': { group: { ...group, spec: { template: {} } } } });
    const codeFor = (claim: WorkloadClaim) => registrations.rejectionOf(claim)?.code;
    for (const address of ['10.0.0.1', '10.0.0.2']) registrations.connect(claimOf(address), noop);
    expect(codeFor(claimOf('10.0.0.3'))).toBe('RESOURCE_EXHAUSTED');
    expect(codeFor(claimOf('10.0.0.1'))).toBeUndefined();
    const other = { serviceAccount: 'other' };
    expect(codeFor(claimOf('10.0.0.3', other))).toBeUndefined();
    registrations.connect(claimOf('10.0.0.3', other), noop).disconnect();
    expect(codeFor(claimOf('10.0.0.4', other))).toBe('RESOURCE_EXHAUSTED');
    registrations.remove('shop/vm-10.0.0.3');
    expect(codeFor(claimOf('10.0.0.4', other))).toBeUndefined();
    registrations.remove('shop/vm-10.0.0.2');
    expect(codeFor(claimOf('10.0.0.4'))).toBeUndefined();
  });
});

describe('a namespace that uses all slots', () => {
  const openGroup = { group: { ...group, spec: { template: {} } } };
  const groups = { 'mallory/vm': openGroup, 'bank/vm': openGroup };
  const of = (namespace: string, serviceAccount: string, index: number): WorkloadClaim => {
    const address = `10.${namespace.length}.${index >> 8}.${index & 255}`;
    const name = `vm-${address}`;
    return claimOf(address, { entry: `${namespace}/${name}`, namespace, name, serviceAccount });
  };
  /** Two service accounts in namespace `mallory` have 500 connections each. */
  const attacked = (server?: WorkloadRegistrationsOptions['server']) => {
    const world = createRegistrations(groups, { maxWorkloads: 1_000, maxOfAccount: 500 }, server);
    const turned: string[] = [];
    const claims = ['one', 'two'].flatMap((account, a) =>
      Array.from({ length: 500 }, (_, index) => of('mallory', account, a * 500 + index)),
    );
    for (const claim of claims) {
      expect(world.registrations.rejectionOf(claim)).toBeUndefined();
      world.registrations.connect(claim, ({ code }) => void turned.push(`${code} ${claim.entry}`));
    }
    return { ...world, turned, claims };
  };

  it('loses a slot to another namespace, and does not regain it', () => {
    const { registrations, reports, turned } = attacked();
    const bank = of('bank', 'pay', 1);
    expect(registrations.rejectionOf(bank)).toBeUndefined();
    registrations.connect(bank, noop);
    const [displaced] = turned;
    expect(turned).toEqual([expect.stringMatching(/^RESOURCE_EXHAUSTED mallory/)]);
    expect(reports.slice(-2)).toEqual([
      `workload.evicted ${displaced!.split(' ')[1]}`,
      `workload.connected ${bank.entry}`,
    ]);
    const repeatedRejection = registrations.rejectionOf(of('mallory', 'one', 1_001));
    expect(repeatedRejection).toEqual({
      code: 'RESOURCE_EXHAUSTED',
      reason: expect.stringMatching(/1000 of at most 1000 .*999/),
    });
  });

  it('shares the slots equally with another namespace that needs as many', () => {
    const { registrations, turned } = attacked();
    const acceptedClaims = Array.from({ length: 600 }, (_, index) => of('bank', `pay-${index % 2}`, index)).filter(
      (claim) => {
        const isAccepted = registrations.rejectionOf(claim) === undefined;
        if (isAccepted) registrations.connect(claim, noop);
        return isAccepted;
      },
    );
    expect([acceptedClaims.length, turned.length]).toEqual([500, 500]);
  });

  it('has no more displaced workloads than there are slots', () => {
    const { registrations } = createRegistrations(groups, { maxWorkloads: 4, maxOfAccount: 4 });
    const all = [...Array(4).keys()].map((index) => of('mallory', 'one', index));
    for (const claim of all) registrations.connect(claim, noop);
    const bank = [...Array(4).keys()].map((index) => of('bank', 'pay', index));
    for (const claim of bank) if (registrations.rejectionOf(claim) === undefined) registrations.connect(claim, noop);
    registrations.remove(all[3]!.entry);
    expect(registrations.rejectionOf(of('mallory', 'one', 9))?.code).toBe('RESOURCE_EXHAUSTED');
    expect(registrations.rejectionOf(bank[0]!)).toBeUndefined();
  });

  it("delays another namespace's writes only until running writes end, even if the API server is slow", async () => {
    const writes: string[] = [];
    const server = {
      request: ({ namespace = '' }: { namespace?: string }) => {
        writes.push(namespace);
        return new Promise<never>(() => {});
      },
    };
    const { registrations, claims } = attacked(server);
    const signal = new AbortController().signal;
    for (const { entry: of } of claims) void registrations.write({ entry: of, operation: 'register' }, signal);
    const bank = of('bank', 'pay', 1);
    registrations.connect(bank, noop);
    void registrations.write({ entry: bank.entry, operation: 'register' }, signal);
    await Promise.resolve();
    expect([writes.length, writes.at(-1)]).toEqual([13, 'bank']);
  });
});

describe('reported health of a workload', () => {
  it('is reported when it changes, with limited text, until the workload disconnects', () => {
    const { registrations, reports } = createRegistrations();
    const connection = registrations.connect(claimOf(), noop);
    connection.reportHealth(undefined);
    connection.reportHealth(undefined);
    connection.reportHealth('x'.repeat(100_000));
    connection.reportHealth('\u001b[31mgone\r\n\u202etxt.exe');
    connection.disconnect();
    connection.reportHealth(undefined);
    expect(reports.slice(1)).toEqual([
      `workload-health.reported ${entry} healthy`,
      `workload-health.reported ${entry} ${'x'.repeat(999)}…`,
      `workload-health.reported ${entry} \\x1b[31mgone\\r\\n\\u202etxt.exe`,
      `workload.disconnected ${entry}`,
    ]);
  });

  it('is reported again when the workload reconnects', () => {
    const { registrations, reports } = createRegistrations();
    for (let i = 0; i < 2; i++) {
      const connection = registrations.connect(claimOf(), noop);
      connection.reportHealth(undefined);
      connection.disconnect();
    }
    expect(reports.filter((text) => text.endsWith('healthy')).length).toBe(2);
  });
});

it('changes of an entry by other clients, but not by its owner, are reported until the workload is removed', () => {
  const { registrations, reports, change } = createRegistrations();
  const object = (annotations: Record<string, string>) => ({ metadata: { name: 'vm-10.0.0.1', annotations } });
  const deletion: ObjectChange = { event: 'delete', key: entry, previous: object({}) };
  const connectedChange: ObjectChange = { event: 'add', key: entry, object: object({ 'istio.io/connectedAt': 'now' }) };
  const disconnectedChange: ObjectChange = {
    event: 'add',
    key: entry,
    object: object({ 'istio.io/disconnectedAt': 'now' }),
  };
  change(deletion);
  const connection = registrations.connect(claimOf(), noop);
  change(connectedChange);
  change(deletion);
  change(disconnectedChange);
  connection.disconnect();
  change(deletion);
  expect(reports.filter((text) => text.startsWith('entry.lost')).length).toBe(3);
  registrations.remove(entry);
  change(deletion);
  expect(reports.filter((text) => text.startsWith('entry.lost')).length).toBe(3);
});
