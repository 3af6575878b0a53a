import { describe, expect, it } from 'vitest';
import type { WorkloadReport } from '../../../machines/discovery/registration/registration-protocol.ts';
import type { ObjectChange } from '../kubernetes/store/object-store.ts';
import type { GroupInForce, ReadGroup } from './group-entry.ts';
import type { Rejection, WorkloadClaim } from './workload-claim.ts';
import {
  type RegistrationLimits,
  WorkloadRegistrations,
  type WorkloadRegistrationsOptions,
} from './workload-registrations.ts';

const group: GroupInForce = { name: 'vm', uid: 'uid', apiVersion: 'v1', spec: { template: { serviceAccount: 'vm' } } };

function claimed(address = '10.0.0.1', more: Partial<WorkloadClaim> = {}): WorkloadClaim {
  const name = `vm-${address}`;
  return {
    ...{ entry: `shop/${name}`, namespace: 'shop', name, group: 'vm', serviceAccount: 'vm', address },
    ...{ network: '', locality: '', labels: {}, isProbed: false, ...more },
  };
}

/** What is told; `connected shop/vm-10.0.0.1`. */
function given(
  groups: Record<string, ReadGroup> = { 'shop/vm': { group } },
  limits: Partial<RegistrationLimits> = {},
  server: WorkloadRegistrationsOptions['server'] = { request: () => Promise.reject(new Error('nobody is asked')) },
) {
  const told: string[] = [];
  let entriesChanged: (changes: readonly ObjectChange[]) => void = () => {};
  const registrations = new WorkloadRegistrations({
    server,
    groupOf: (namespace, name) => groups[`${namespace}/${name}`],
    onEntries: (changed) => {
      entriesChanged = changed;
    },
    controller: 'me',
    limits: { maxWorkloads: 3, maxOfAccount: 2, ...limits },
  });
  const tell = ({ type, entry, ...said }: WorkloadReport): void => {
    const health = 'healthy' in said ? ` ${said.healthy ? 'healthy' : said.message}` : '';
    told.push(`${type} ${entry}${health}`);
  };
  const stop = registrations.watch(tell);
  return { registrations, told, stop, tell, change: (...changes: ObjectChange[]) => entriesChanged(changes) };
}

const entry = 'shop/vm-10.0.0.1';
const nothing = (): void => {};

describe('of the connections of a workload', () => {
  it('the first and the last are told, and a second one is not', () => {
    const { registrations, told } = given();
    const one = registrations.enter(claimed(), nothing);
    const two = registrations.enter(claimed(), () => {});
    one.leave();
    one.leave();
    expect(told).toEqual([`workload.connected ${entry}`]);
    two.leave();
    expect(told).toEqual([`workload.connected ${entry}`, `workload.disconnected ${entry}`]);
  });

  it('those that there are are told to who begins to look', () => {
    const { registrations, told, stop, tell } = given();
    stop();
    registrations.enter(claimed(), nothing);
    registrations.enter(claimed('10.0.0.2'), nothing).leave();
    registrations.watch(tell);
    expect(told).toEqual([`workload.connected ${entry}`]);
  });

  it('all are turned away, and none that has gone', () => {
    const { registrations } = given();
    const turned: string[] = [];
    const turn = (name: string) => (why: Rejection) => void turned.push(`${name}: ${why.code} ${why.reason}`);
    registrations.enter(claimed(), turn('one'));
    registrations.enter(claimed(), turn('two')).leave();
    registrations.turnAway(entry, 'it is not allowed');
    expect(turned).toEqual(['one: FAILED_PRECONDITION it is not allowed']);
  });
});

describe('who may not be registered', () => {
  it.each<[string, Record<string, ReadGroup>, string]>([
    ['without a group', {}, 'FAILED_PRECONDITION'],
    ['with a group of the name in another namespace', { 'other/vm': { group } }, 'FAILED_PRECONDITION'],
    ['with a group that cannot be read', { 'shop/vm': { problem: 'no template' } }, 'FAILED_PRECONDITION'],
    [
      'with a group of another account',
      { 'shop/vm': { group: { ...group, spec: { template: { serviceAccount: 'admin' } } } } },
      'PERMISSION_DENIED',
    ],
  ])('%s', (_, groups, code) => {
    expect(given(groups).registrations.rejectionOf(claimed())?.code).toBe(code);
  });

  it('any account of the namespace may where the group names none', () => {
    const any = { group: { ...group, spec: { template: {} } } };
    expect(given({ 'shop/vm': any }).registrations.rejectionOf(claimed())).toBeUndefined();
  });

  it('as a workload of another account, as long as that one is connected', () => {
    const { registrations, told } = given({ 'shop/vm': { group: { ...group, spec: { template: {} } } } });
    const stranger = claimed('10.0.0.1', { serviceAccount: 'stranger', labels: { app: 'another' } });
    const connection = registrations.enter(claimed(), nothing);
    expect(registrations.rejectionOf(stranger)?.code).toBe('PERMISSION_DENIED');
    expect(registrations.rejectionOf(claimed())).toBeUndefined();
    connection.leave();
    expect(registrations.rejectionOf(stranger)).toBeUndefined();
    registrations.enter(stranger, nothing);
    expect(registrations.rejectionOf(claimed())?.code).toBe('PERMISSION_DENIED');
    expect(told.at(-1)).toBe(`workload.connected ${entry}`);
  });

  it('by another group, address or network of which the same name of an entry comes', () => {
    const groups = { 'shop/vm': { group }, 'shop/vm-10.0.0.1': { group } };
    const { registrations } = given(groups);
    const one = claimed('10.0.0.1', {
      entry: 'shop/vm-10.0.0.1-10.0.0.2',
      name: 'vm-10.0.0.1-10.0.0.2',
      network: '10.0.0.2',
    });
    registrations.enter(one, nothing).leave();
    expect(registrations.rejectionOf(one)).toBeUndefined();
    const others = [
      { group: 'vm-10.0.0.1', address: '10.0.0.2', network: '' },
      { address: '10.0.0.2' },
      { network: '' },
    ];
    for (const other of others) {
      expect(registrations.rejectionOf({ ...one, ...other })?.code).toBe('FAILED_PRECONDITION');
    }
  });

  it('more than there may be, of an account or in all, until others are forgotten; who is there already may come again', () => {
    const { registrations } = given({ 'shop/vm': { group: { ...group, spec: { template: {} } } } });
    const codeFor = (claim: WorkloadClaim) => registrations.rejectionOf(claim)?.code;
    for (const address of ['10.0.0.1', '10.0.0.2']) registrations.enter(claimed(address), nothing);
    expect(codeFor(claimed('10.0.0.3'))).toBe('RESOURCE_EXHAUSTED');
    expect(codeFor(claimed('10.0.0.1'))).toBeUndefined();
    const other = { serviceAccount: 'other' };
    expect(codeFor(claimed('10.0.0.3', other))).toBeUndefined();
    registrations.enter(claimed('10.0.0.3', other), nothing).leave();
    expect(codeFor(claimed('10.0.0.4', other))).toBe('RESOURCE_EXHAUSTED');
    registrations.forget('shop/vm-10.0.0.3');
    expect(codeFor(claimed('10.0.0.4', other))).toBeUndefined();
    registrations.forget('shop/vm-10.0.0.2');
    expect(codeFor(claimed('10.0.0.4'))).toBeUndefined();
  });
});

describe('a namespace that uses up all slots', () => {
  const any = { group: { ...group, spec: { template: {} } } };
  const groups = { 'mallory/vm': any, 'bank/vm': any };
  const of = (namespace: string, serviceAccount: string, index: number): WorkloadClaim => {
    const address = `10.${namespace.length}.${index >> 8}.${index & 255}`;
    const name = `vm-${address}`;
    return claimed(address, { entry: `${namespace}/${name}`, namespace, name, serviceAccount });
  };
  /** Two service accounts of `mallory` have 500 connections each. */
  const attacked = (server?: WorkloadRegistrationsOptions['server']) => {
    const world = given(groups, { maxWorkloads: 1_000, maxOfAccount: 500 }, server);
    const turned: string[] = [];
    const claims = ['one', 'two'].flatMap((account, a) =>
      Array.from({ length: 500 }, (_, index) => of('mallory', account, a * 500 + index)),
    );
    for (const claim of claims) {
      expect(world.registrations.rejectionOf(claim)).toBeUndefined();
      world.registrations.enter(claim, ({ code }) => void turned.push(`${code} ${claim.entry}`));
    }
    return { ...world, turned, claims };
  };

  it('gives one up for another namespace, and gets none of them back', () => {
    const { registrations, told, turned } = attacked();
    const bank = of('bank', 'pay', 1);
    expect(registrations.rejectionOf(bank)).toBeUndefined();
    registrations.enter(bank, nothing);
    const [displaced] = turned;
    expect(turned).toEqual([expect.stringMatching(/^RESOURCE_EXHAUSTED mallory/)]);
    expect(told.slice(-2)).toEqual([
      `workload.displaced ${displaced!.split(' ')[1]}`,
      `workload.connected ${bank.entry}`,
    ]);
    const again = registrations.rejectionOf(of('mallory', 'one', 1_001));
    expect(again).toEqual({ code: 'RESOURCE_EXHAUSTED', reason: expect.stringMatching(/1000 of at most 1000 .*999/) });
  });

  it('shares them evenly with another namespace that needs as many', () => {
    const { registrations, turned } = attacked();
    const accepted = Array.from({ length: 600 }, (_, index) => of('bank', `pay-${index % 2}`, index)).filter(
      (claim) => {
        const isAccepted = registrations.rejectionOf(claim) === undefined;
        if (isAccepted) registrations.enter(claim, nothing);
        return isAccepted;
      },
    );
    expect([accepted.length, turned.length]).toEqual([500, 500]);
  });

  it('knows of displaced workloads no more than there are slots for', () => {
    const { registrations } = given(groups, { maxWorkloads: 4, maxOfAccount: 4 });
    const all = [...Array(4).keys()].map((index) => of('mallory', 'one', index));
    for (const claim of all) registrations.enter(claim, nothing);
    const bank = [...Array(4).keys()].map((index) => of('bank', 'pay', index));
    for (const claim of bank) if (registrations.rejectionOf(claim) === undefined) registrations.enter(claim, nothing);
    registrations.forget(all[3]!.entry);
    expect(registrations.rejectionOf(of('mallory', 'one', 9))?.code).toBe('RESOURCE_EXHAUSTED');
    expect(registrations.rejectionOf(bank[0]!)).toBeUndefined();
  });

  it('delays the write for another namespace by those under way, however slow the API server is', async () => {
    const asked: string[] = [];
    const server = {
      request: ({ namespace = '' }: { namespace?: string }) => {
        asked.push(namespace);
        return new Promise<never>(() => {});
      },
    };
    const { registrations, claims } = attacked(server);
    const signal = new AbortController().signal;
    for (const { entry: of } of claims) void registrations.write({ entry: of, deed: 'register' }, signal);
    const bank = of('bank', 'pay', 1);
    registrations.enter(bank, nothing);
    void registrations.write({ entry: bank.entry, deed: 'register' }, signal);
    await Promise.resolve();
    expect([asked.length, asked.at(-1)]).toEqual([13, 'bank']);
  });
});

describe('health', () => {
  it('is told when it is another, bounded, and not of a workload that has gone', () => {
    const { registrations, told } = given();
    const connection = registrations.enter(claimed(), nothing);
    connection.reportHealth(undefined);
    connection.reportHealth(undefined);
    connection.reportHealth('x'.repeat(100_000));
    connection.reportHealth('\u001b[31mgone\r\n\u202etxt.exe');
    connection.leave();
    connection.reportHealth(undefined);
    expect(told.slice(1)).toEqual([
      `workload.health ${entry} healthy`,
      `workload.health ${entry} ${'x'.repeat(999)}…`,
      `workload.health ${entry} \\x1b[31mgone\\r\\n\\u202etxt.exe`,
      `workload.disconnected ${entry}`,
    ]);
  });

  it('is told anew when the workload comes back', () => {
    const { registrations, told } = given();
    for (let i = 0; i < 2; i++) {
      const connection = registrations.enter(claimed(), nothing);
      connection.reportHealth(undefined);
      connection.leave();
    }
    expect(told.filter((text) => text.endsWith('healthy')).length).toBe(2);
  });
});

it('what others do to an entry is told until its workload is forgotten, and what is written of who has it is not', () => {
  const { registrations, told, change } = given();
  const object = (annotations: Record<string, string>) => ({ metadata: { name: 'vm-10.0.0.1', annotations } });
  const gone: ObjectChange = { event: 'delete', key: entry, previous: object({}) };
  const connected: ObjectChange = { event: 'add', key: entry, object: object({ 'istio.io/connectedAt': 'now' }) };
  const noted: ObjectChange = { event: 'add', key: entry, object: object({ 'istio.io/disconnectedAt': 'now' }) };
  change(gone);
  const connection = registrations.enter(claimed(), nothing);
  change(connected);
  change(gone);
  change(noted);
  connection.leave();
  change(gone);
  expect(told.filter((text) => text.startsWith('entry.lost')).length).toBe(3);
  registrations.forget(entry);
  change(gone);
  expect(told.filter((text) => text.startsWith('entry.lost')).length).toBe(3);
});
