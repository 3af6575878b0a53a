/** What is known of workloads' certificates: one is renewed when another has arrived, by its agent's word, and not when it is signed. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { LedgerLog } from './ledger-log.ts';
import { WorkloadLedger } from './workload-ledger.ts';

const hourMs = 3_600_000;
const cart = { identity: 'spiffe://td/ns/shop/sa/cart', node: 'a' };
/** An agent of others says no id. */
const foreign = { ...cart, node: '' };

function ledgerOf(): WorkloadLedger {
  return new WorkloadLedger({ maxLeafMs: 24 * hourMs });
}

function issue(ledger: WorkloadLedger, authority: string, serialNumber: string, hours: number, workload = cart): void {
  ledger.apply({ issued: { ...workload, authority, serialNumber, endsAt: hours * hourMs } });
}

const missing = (ledger: WorkloadLedger, authority: string, hours = 0) =>
  ledger.missingRenewal(authority, hours * hourMs);

describe('a workload is waited for', () => {
  it('until another certificate has arrived, however many were signed', () => {
    const ledger = ledgerOf();
    issue(ledger, 'old', '1', 24);
    issue(ledger, 'new', '2', 30);
    issue(ledger, 'new', '3', 31);
    expect(missing(ledger, 'old')).toMatchObject({
      count: 1,
      workloads: [
        `${cart.identity} a (signed anew, and not said to have arrived; its certificate ends 1970-01-02T00:00:00.000Z)`,
      ],
    });
    ledger.apply({ arrived: { ...cart, serialNumber: '1' } });
    expect(missing(ledger, 'old').count).toBe(1);
    ledger.apply({ arrived: { ...cart, serialNumber: '2' } });
    expect(missing(ledger, 'old').count).toBe(0);
    expect(missing(ledger, 'new').count).toBe(1);
  });

  it('until the old one ends, where it never says anything', () => {
    const ledger = ledgerOf();
    issue(ledger, 'old', '1', 24);
    issue(ledger, 'new', '2', 40);
    expect(missing(ledger, 'old', 23.9).count).toBe(1);
    expect(missing(ledger, 'old', 24).count).toBe(0);
    expect(missing(ledger, 'new', 24).count).toBe(1);
  });

  it('by the last end of all that have no id, whatever one of them says', () => {
    const ledger = ledgerOf();
    issue(ledger, 'old', '1', 24, foreign);
    issue(ledger, 'old', '2', 20, foreign);
    issue(ledger, 'new', '3', 40, foreign);
    ledger.apply({ arrived: { ...foreign, serialNumber: '3' } });
    expect(missing(ledger, 'old', 23)).toMatchObject({ count: 1, lookAgainAt: 24 * hourMs });
    expect(missing(ledger, 'old', 24).count).toBe(0);
  });

  it('by nobody else’s word', () => {
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
    expect(missing(ledger, 'old').count).toBe(1);
    expect(ledger.isNews({ ...cart, serialNumber: '2' })).toBe(true);
    ledger.apply({ arrived: { ...cart, serialNumber: '2' } });
    expect(ledger.isNews({ ...cart, serialNumber: '2' })).toBe(false);
  });
});

describe('whoever asks for certificates without end', () => {
  it('costs a few lines, and no root is dropped for it', () => {
    const ledger = ledgerOf();
    issue(ledger, 'old', '0', 24);
    for (let i = 1; i <= 5_000; i++) issue(ledger, i % 2 === 0 ? 'new' : 'newer', String(i), 30);
    expect([...ledger.lines(0)].length).toBeLessThanOrEqual(11);
    expect(missing(ledger, 'old', 23.9).count).toBe(1);
    expect(missing(ledger, 'old', 24).count).toBe(0);
    ledger.apply({ arrived: { ...cart, serialNumber: '5000' } });
    expect(missing(ledger, 'new', 29).count).toBeGreaterThan(0);
  });

  it('of one authority is forgotten nothing of, but for numbers', () => {
    const ledger = ledgerOf();
    issue(ledger, 'old', '0', 48);
    for (let i = 1; i <= 100; i++) issue(ledger, 'old', String(i), 24);
    expect([...ledger.lines(0)]).toHaveLength(8);
    expect(missing(ledger, 'old', 47).count).toBe(1);
    issue(ledger, 'new', '101', 24);
    ledger.apply({ arrived: { ...cart, serialNumber: '101' } });
    expect(missing(ledger, 'old', 1).count).toBe(0);
  });
});

describe('the log', () => {
  const file = (): string => {
    const directory = mkdtempSync(join(tmpdir(), 'ledger-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    return join(directory, 'workloads.log');
  };

  it('has what was signed and what has arrived, also when it is made anew', () => {
    const path = file();
    const [log, ledger] = [new LedgerLog(path), ledgerOf()];
    log.readInto(ledger, 0);
    const add = (line: Parameters<WorkloadLedger['apply']>[0]): void => {
      ledger.apply(line);
      log.add(line, ledger, 0);
    };
    add({ issued: { ...cart, authority: 'old', serialNumber: '1', endsAt: 24 * hourMs } });
    add({ issued: { ...cart, authority: 'new', serialNumber: '2', endsAt: 24 * hourMs } });
    for (const times of [1, 2]) {
      const read = ledgerOf();
      expect(new LedgerLog(path).readInto(read, 0), `read ${times} times`).toBe(0);
      expect(missing(read, 'old').count).toBe(1);
    }
    add({ arrived: { ...cart, serialNumber: '2' } });
    for (const _ of [1, 2]) {
      const read = ledgerOf();
      new LedgerLog(path).readInto(read, 0);
      expect([missing(read, 'old').count, missing(read, 'new').count]).toEqual([0, 1]);
    }
  });

  it('of a version that counted what was signed waits for each certificate until it ends', () => {
    const path = file();
    const line = (authority: string, endsAt: number) => JSON.stringify({ issued: { ...cart, authority, endsAt } });
    writeFileSync(path, `${line('old', 24 * hourMs)}\n${line('new', 30 * hourMs)}\n{"arrived":{"node":1}}\n`);
    const ledger = ledgerOf();
    expect(new LedgerLog(path).readInto(ledger, 0)).toBe(1);
    expect(missing(ledger, 'old', 23.9).count).toBe(1);
    expect(missing(ledger, 'old', 24).count).toBe(0);
  });
});
