/** A certificate is replaced when the agent reports that the next one has arrived, not when the next one is signed. */
import { appendFileSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { LedgerLog } from './ledger-log.ts';
import { WorkloadLedger } from './workload-ledger.ts';

const hourMs = 3_600_000;
const cart = { identity: 'spiffe://td/ns/shop/sa/cart', node: 'a' };
/** An agent of another vendor, which reports no node ID. */
const foreignAgent = { ...cart, node: '' };

function ledgerOf(): WorkloadLedger {
  return new WorkloadLedger({ maxLeafMs: 24 * hourMs });
}

function issue(ledger: WorkloadLedger, authority: string, serialNumber: string, hours: number, workload = cart): void {
  ledger.apply({ issued: { ...workload, authority, serialNumber, endsAt: hours * hourMs } });
}

const missingRenewals = (ledger: WorkloadLedger, authority: string, hours = 0) =>
  ledger.missingRenewal([authority], hours * hourMs);

describe('a rotation', () => {
  it('waits until a workload reports a new certificate, however many certificates were signed for the workload', () => {
    const ledger = ledgerOf();
    issue(ledger, 'old', '1', 24);
    issue(ledger, 'new', '2', 30);
    issue(ledger, 'new', '3', 31);
    expect(missingRenewals(ledger, 'old')).toMatchObject({
      count: 1,
      workloads: [
        `${cart.identity} a (renewed, but the renewal is not confirmed; certificate expires 1970-01-02T00:00:00.000Z)`,
      ],
    });
    ledger.apply({ arrived: { ...cart, serialNumber: '1' } });
    expect(missingRenewals(ledger, 'old').count).toBe(1);
    ledger.apply({ arrived: { ...cart, serialNumber: '2' } });
    expect(missingRenewals(ledger, 'old').count).toBe(0);
    expect(missingRenewals(ledger, 'new').count).toBe(1);
  });

  it('waits until the old certificate expires if a workload reports no arrival', () => {
    const ledger = ledgerOf();
    issue(ledger, 'old', '1', 24);
    issue(ledger, 'new', '2', 40);
    expect(missingRenewals(ledger, 'old', 23.9).count).toBe(1);
    expect(missingRenewals(ledger, 'old', 24).count).toBe(0);
    expect(missingRenewals(ledger, 'new', 24).count).toBe(1);
  });

  it('waits until the last old certificate expires if a workload reports no node ID', () => {
    const ledger = ledgerOf();
    issue(ledger, 'old', '1', 24, foreignAgent);
    issue(ledger, 'old', '2', 20, foreignAgent);
    issue(ledger, 'new', '3', 40, foreignAgent);
    ledger.apply({ arrived: { ...foreignAgent, serialNumber: '3' } });
    expect(missingRenewals(ledger, 'old', 23)).toMatchObject({ count: 1, checkAgainAt: 24 * hourMs });
    expect(missingRenewals(ledger, 'old', 24).count).toBe(0);
  });

  it('waits for a workload even if other workloads send reports', () => {
    const ledger = ledgerOf();
    issue(ledger, 'old', '1', 24);
    issue(ledger, 'new', '2', 24);
    for (const other of [
      { ...cart, node: 'b' },
      { ...cart, identity: 'spiffe://td/ns/shop/sa/other' },
    ]) {
      ledger.apply({ arrived: { ...other, serialNumber: '2' } });
    }
    ledger.apply({ arrived: { ...cart, serialNumber: '3' } });
    ledger.apply({ arrived: { ...cart, serialNumber: '' } });
    expect(missingRenewals(ledger, 'old').count).toBe(1);
    expect(ledger.isNewArrival({ ...cart, serialNumber: '2' })).toBe(true);
    ledger.apply({ arrived: { ...cart, serialNumber: '2' } });
    expect(ledger.isNewArrival({ ...cart, serialNumber: '2' })).toBe(false);
  });
});

describe('a workload that requests certificates without limit', () => {
  it('occupies a limited number of entries, and keeps the roots of its certificates', () => {
    const ledger = ledgerOf();
    issue(ledger, 'old', '0', 24);
    for (let i = 1; i <= 5_000; i++) issue(ledger, i % 2 === 0 ? 'new' : 'newer', String(i), 30);
    expect([...ledger.ledgerLines(0)].length).toBeLessThanOrEqual(11);
    expect(missingRenewals(ledger, 'old', 23.9).count).toBe(1);
    expect(missingRenewals(ledger, 'old', 24).count).toBe(0);
    ledger.apply({ arrived: { ...cart, serialNumber: '5000' } });
    expect(missingRenewals(ledger, 'new', 29).count).toBeGreaterThan(0);
  });

  it('keeps at least the latest certificate expiry of each authority', () => {
    const ledger = ledgerOf();
    issue(ledger, 'old', '0', 48);
    for (let i = 1; i <= 100; i++) issue(ledger, 'old', String(i), 24);
    expect([...ledger.ledgerLines(0)]).toHaveLength(8);
    expect(missingRenewals(ledger, 'old', 47).count).toBe(1);
    issue(ledger, 'new', '101', 24);
    ledger.apply({ arrived: { ...cart, serialNumber: '101' } });
    expect(missingRenewals(ledger, 'old', 1).count).toBe(0);
  });
});

describe('a workload that reports many nodes', () => {
  const at = (node: string, identity = cart.identity) => ({ identity, node });

  it('occupies a limited number of entries, and keeps roots until its other certificates expire', () => {
    const ledger = new WorkloadLedger({ maxLeafMs: 24 * hourMs, maxOfIdentity: 2, maxEntries: 3, now: () => 0 });
    for (const node of ['a', 'b', 'c', 'd']) issue(ledger, 'old', node, 24, at(node));
    const other = at('a', 'spiffe://td/ns/shop/sa/other');
    issue(ledger, 'old', '9', 24, other);
    expect(ledger.size).toBe(3);
    for (const workload of [at('a'), at('b'), other]) {
      issue(ledger, 'new', `${workload.node}2`, 30, workload);
      ledger.apply({ arrived: { ...workload, serialNumber: `${workload.node}2` } });
    }
    expect(missingRenewals(ledger, 'old', 23.9).count).toBe(1);
    expect(missingRenewals(ledger, 'old', 24).count).toBe(0);
  });

  it('frees entries when its certificates expire', () => {
    let now = 0;
    const ledger = new WorkloadLedger({ maxLeafMs: 24 * hourMs, maxOfIdentity: 2, maxEntries: 3, now: () => now });
    for (const node of ['a', 'b']) issue(ledger, 'old', node, 24, at(node));
    now = 25 * hourMs;
    issue(ledger, 'old', 'c', 48, at('c'));
    expect(ledger.size).toBe(1);
    expect([...ledger.ledgerLines(now)]).toMatchObject([{ issued: { node: 'c' } }]);
  });
});

it('a namespace with many service accounts evicts only its own entries, and the certificates of these entries count until they expire', () => {
  const ledger = new WorkloadLedger({ maxLeafMs: 24 * hourMs, maxEntries: 4, now: () => 0 });
  for (let i = 0; i < 9; i++) {
    issue(ledger, 'old', `${i}`, 20, { identity: `spiffe://td/ns/mallory/sa/${i}`, node: 'a' });
  }
  const bank = { identity: 'spiffe://td/ns/bank/sa/pay', node: 'a' };
  issue(ledger, 'old', '99', 24, bank);
  expect(ledger.size).toBe(4);
  expect(ledger.isNewArrival({ ...bank, serialNumber: '99' })).toBe(false);
  issue(ledger, 'new', '100', 30, bank);
  expect(ledger.isNewArrival({ ...bank, serialNumber: '100' })).toBe(true);
  ledger.apply({ arrived: { ...bank, serialNumber: '100' } });
  expect(missingRenewals(ledger, 'old', 19).count).toBe(4);
  expect(missingRenewals(ledger, 'old', 20).count).toBe(0);
});

describe('the ledger log', () => {
  const file = (): string => {
    const directory = mkdtempSync(join(tmpdir(), 'ledger-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    return join(directory, 'workloads.log');
  };

  it('restores issued and arrived certificates, also after compaction', () => {
    const path = file();
    const [log, ledger] = [new LedgerLog(path), ledgerOf()];
    log.loadLedger(ledger, 0);
    const add = (line: Parameters<WorkloadLedger['apply']>[0]): void => {
      ledger.apply(line);
      log.add(line, ledger, 0);
    };
    add({ issued: { ...cart, authority: 'old', serialNumber: '1', endsAt: 24 * hourMs } });
    add({ issued: { ...cart, authority: 'new', serialNumber: '2', endsAt: 24 * hourMs } });
    for (const times of [1, 2]) {
      const read = ledgerOf();
      expect(new LedgerLog(path).loadLedger(read, 0), `read ${times} times`).toBe(0);
      expect(missingRenewals(read, 'old').count).toBe(1);
    }
    add({ arrived: { ...cart, serialNumber: '2' } });
    for (const _ of [1, 2]) {
      const read = ledgerOf();
      new LedgerLog(path).loadLedger(read, 0);
      expect([missingRenewals(read, 'old').count, missingRenewals(read, 'new').count]).toEqual([0, 1]);
    }
  });

  it('can be restored at any size', () => {
    const path = file();
    const line = (i: number) =>
      `${JSON.stringify({ issued: { ...cart, node: 'n'.repeat(1_000), authority: 'old', serialNumber: `${i}`, endsAt: hourMs } })}\n`;
    const lines = Array.from({ length: 1_000 }, (_, i) => line(i)).join('');
    for (let writtenBytes = 0; writtenBytes < 70 * 1024 * 1024; writtenBytes += lines.length)
      appendFileSync(path, lines);
    appendFileSync(path, `${'x'.repeat(3 * 1024 * 1024)}\n{"issued":{"iden`);
    const ledger = ledgerOf();
    expect(new LedgerLog(path).loadLedger(ledger, 0)).toBeGreaterThan(0);
    expect(missingRenewals(ledger, 'old').count).toBe(1);
    expect(statSync(path).size).toBeLessThan(100_000);
  });

  it('restores certificates of a version without arrival reports, and counts each until it expires', () => {
    const path = file();
    const line = (authority: string, endsAt: number) => JSON.stringify({ issued: { ...cart, authority, endsAt } });
    writeFileSync(path, `${line('old', 24 * hourMs)}\n${line('new', 30 * hourMs)}\n{"arrived":{"node":1}}\n`);
    const ledger = ledgerOf();
    expect(new LedgerLog(path).loadLedger(ledger, 0)).toBe(1);
    expect(missingRenewals(ledger, 'old', 23.9).count).toBe(1);
    expect(missingRenewals(ledger, 'old', 24).count).toBe(0);
  });
});
