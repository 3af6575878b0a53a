/** Tests the start of an authority for each state that an earlier process can leave. */

import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Journal } from '../../../machines/discovery/ca/authority.machine.ts';
import { type LoggedEvent, recordingLog } from '../../../test/harness/recording-log.ts';
import { readCertificate } from '../../identity/certificate.ts';
import { type Issuer, issueIntermediate, issueRoot } from '../../identity/issue.ts';
import { Authority, type AuthorityOptions } from './authority.ts';
import { DirectoryStore } from './authority-store.ts';

const hour = 3_600_000;
let directory: string;
let now: Date;
let warnings: LoggedEvent[];
let log: AuthorityOptions['log'];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'authority-'));
  now = new Date('2026-11-23T12:00:00Z');
  ({ log, lines: warnings } = recordingLog());
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const state = (): string => join(directory, 'state');
const plugged = (): string => join(directory, 'plugged');

function authority(changes: Partial<AuthorityOptions> = {}): Authority {
  return new Authority({
    root: { ttlMs: 100 * hour, rsaBits: 0 },
    pluggedInDirectory: plugged(),
    store: new DirectoryStore(state()),
    trustDomain: () => 'cluster.local',
    gracePercent: 20,
    now: () => now,
    log,
    ...changes,
  });
}

/** Calls the same effects as the chart. */
async function startedAuthority(): Promise<{ one: Authority; id: string }> {
  const one = authority();
  expect(one.load()).toEqual({ outcome: 'absent' });
  const { id } = await one.prepareRoot();
  one.writeJournal({ stage: 'steady', signer: id, other: null, tainted: null });
  return { one, id };
}

const pass = (ms: number): void => {
  now = new Date(now.getTime() + ms);
};

describe('a self-signed authority', () => {
  it('keeps its root after a restart, with a key that only its owner can read', async () => {
    const { id } = await startedAuthority();
    expect(authority().load()).toEqual({
      outcome: 'resumed',
      journal: { stage: 'steady', signer: id, other: null, tainted: null },
    });
    for (const name of readdirSync(state())) expect(statSync(join(state(), name)).mode & 0o077).toBe(0);
    expect(statSync(state()).mode & 0o077).toBe(0);
  });

  it('writes the trusted roots to a file, and trusts them even if this fails', async () => {
    const { one, id } = await startedAuthority();
    const { id: next } = await one.prepareRoot();
    const certificates = (): number => {
      const text = readFileSync(join(state(), 'root-cert.pem'), 'utf8');
      return text.match(/BEGIN CERTIFICATE/g)!.length;
    };
    for (const roots of [[id], [id, next], [next]]) {
      one.publishRoots(roots);
      expect(certificates()).toBe(roots.length);
    }
    one.signWith(next);
    rmSync(join(state(), 'root-cert.pem'));
    mkdirSync(join(state(), 'root-cert.pem'));
    one.publishRoots([id, next]);
    expect(one.active?.roots).toEqual([id, next]);
    expect(warnings.at(-1)).toMatchObject({ event: 'authority.rootsUnwritable', reason: expect.stringMatching(/./) });
  });

  it('continues an interrupted rotation after a restart', async () => {
    const { one, id } = await startedAuthority();
    const { id: next } = await one.prepareRoot();
    const journal = { stage: 'trusting' as const, signer: id, other: next, tainted: null };
    one.writeJournal(journal);
    const nextAuthority = authority();
    expect(nextAuthority.load()).toEqual({ outcome: 'resumed', journal });
    nextAuthority.publishRoots([id, next]);
    nextAuthority.signWith(id);
    expect(nextAuthority.active?.material.id).toBe(id);
    expect(nextAuthority.active?.bundle.roots).toHaveLength(2);
  });

  it('records when the distribution of the roots of a stage began, and restores this time after a restart', async () => {
    const { one, id } = await startedAuthority();
    const { id: next } = await one.prepareRoot();
    const trusting: Journal = { stage: 'trusting', signer: id, other: next, tainted: null };
    one.writeJournal(trusting);
    const startedAt = now.getTime();
    pass(hour);
    const restarted = authority();
    restarted.load();
    // The chart records the stage again when it resumes it, or when its signer is tainted.
    restarted.writeJournal({ ...trusting, tainted: id });
    expect(restarted.distributedSince).toBe(startedAt);
    // After a step back, workloads that trust one root must receive the other again.
    for (const stage of ['signing', 'dropping', 'trusting'] as const) restarted.writeJournal({ ...trusting, stage });
    expect(restarted.distributedSince).toBe(now.getTime());
  });

  it('accepts a journal without a valid start of the distribution, and counts the distribution from the restart', async () => {
    const { one, id } = await startedAuthority();
    const { id: next } = await one.prepareRoot();
    const trusting: Journal = { stage: 'trusting', signer: id, other: next, tainted: null };
    one.writeJournal(trusting);
    for (const since of [undefined, 'yesterday', null, -1]) {
      writeFileSync(join(state(), 'journal.json'), JSON.stringify({ ...trusting, since }));
      const restarted = authority();
      expect(restarted.load()).toEqual({ outcome: 'resumed', journal: trusting });
      pass(hour);
      restarted.writeJournal(trusting);
      expect(restarted.distributedSince).toBe(now.getTime());
    }
  });

  it('replaces the server certificate of the control plane last, even if a restart interrupts the rotation', async () => {
    const { one, id } = await startedAuthority();
    const { id: next } = await one.prepareRoot();
    const signersIn = (someAuthority: Authority): unknown[] => [
      someAuthority.active?.material.id,
      someAuthority.active?.serverAuthority.id,
    ];
    const takeOver = (someAuthority: Authority, journal: Journal, roots: string[]): void => {
      someAuthority.writeJournal(journal);
      someAuthority.publishRoots(roots);
      someAuthority.signWith(journal.signer);
    };
    takeOver(one, { stage: 'trusting', signer: id, other: next, tainted: null }, [id, next]);
    expect(signersIn(one)).toEqual([id, id]);
    takeOver(one, { stage: 'signing', signer: next, other: id, tainted: null }, [next, id]);
    expect(signersIn(one)).toEqual([next, id]);
    const nextAuthority = authority();
    const loadResult = nextAuthority.load();
    expect(loadResult).toMatchObject({ outcome: 'resumed', journal: { stage: 'signing' } });
    takeOver(nextAuthority, { stage: 'signing', signer: next, other: id, tainted: null }, [next, id]);
    expect(signersIn(nextAuthority)).toEqual([next, id]);
    takeOver(nextAuthority, { stage: 'dropping', signer: next, other: id, tainted: null }, [next]);
    expect(signersIn(nextAuthority)).toEqual([next, next]);
  });

  it('removes the files of a rotation that was killed before it wrote the journal', async () => {
    const { one, id } = await startedAuthority();
    await one.prepareRoot();
    // A write to a full disk leaves such files.
    for (const name of ['key', 'chain']) writeFileSync(join(state(), `0123abcd.${name}.new`), 'half');
    const nextAuthority = authority();
    expect(nextAuthority.load()).toEqual({
      outcome: 'resumed',
      journal: { stage: 'steady', signer: id, other: null, tainted: null },
    });
    nextAuthority.writeJournal({ stage: 'steady', signer: id, other: null, tainted: null });
    expect(readdirSync(state()).sort()).toEqual([`${id}.chain`, `${id}.key`, 'journal.json'].sort());
  });

  it('replaces an expired root without a rotation', async () => {
    await startedAuthority();
    pass(101 * hour);
    expect(authority().load()).toEqual({ outcome: 'absent' });
    expect(warnings).toMatchObject([{ event: 'authority.expired', next: 'new root' }]);
  });

  it.each(['neither', 'the expired', 'the remaining'])(
    'keeps the other root when one expires during a rotation in which %s root is tainted',
    async (taintedRoot) => {
      const { one, id } = await startedAuthority();
      pass(60 * hour);
      const { id: next } = await one.prepareRoot();
      const taintedId = { neither: null, 'the expired': id, 'the remaining': next }[taintedRoot]!;
      one.writeJournal({ stage: 'signing', signer: next, other: id, tainted: taintedId });
      pass(50 * hour);
      expect(authority().load()).toEqual({
        outcome: 'resumed',
        journal: { stage: 'steady', signer: next, other: null, tainted: taintedRoot === 'the remaining' ? next : null },
      });
    },
  );

  it("requests a rotation when a fifth of its root's lifetime remains", async () => {
    const { one, id } = await startedAuthority();
    pass(79 * hour);
    expect(one.isRootDue(id)).toBe(false);
    pass(2 * hour);
    expect(one.isRootDue(id)).toBe(true);
  });

  it.each([0o640, 0o604, 0o620])('does not sign if other users can access its key (mode %o)', async (mode) => {
    const { id } = await startedAuthority();
    chmodSync(join(state(), `${id}.key`), mode);
    expect(authority().load()).toEqual({
      outcome: 'refused',
      reason: expect.stringMatching(/state.*mode must be 0600.*sign certificates for any workload.*chmod 600/),
    });
  });

  it.each<[string, (id: string) => void]>([
    ['a truncated journal', () => writeFileSync(join(state(), 'journal.json'), '{"stage":"ste')],
    [
      'an invalid journal',
      () => writeFileSync(join(state(), 'journal.json'), '{"stage":"x","signer":"../y","other":null}'),
    ],
    ['an empty journal', () => writeFileSync(join(state(), 'journal.json'), '')],
    ['a missing key', (id) => rmSync(join(state(), `${id}.key`))],
    ['an empty key', (id) => writeFileSync(join(state(), `${id}.key`), '')],
    [
      'the key of another authority',
      (id) => {
        const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
        writeFileSync(join(state(), `${id}.key`), privateKey.export({ format: 'pem', type: 'pkcs8' }));
      },
    ],
    [
      'an incomplete chain',
      (id) =>
        writeFileSync(join(state(), `${id}.chain`), readFileSync(join(state(), `${id}.chain`), 'utf8').slice(0, 200)),
    ],
  ])('does not sign with %s, and reports the remedy', async (_, damage) => {
    const { id } = await startedAuthority();
    damage(id);
    expect(authority().load()).toEqual({
      outcome: 'refused',
      reason: expect.stringMatching(/state.*cannot be used.*restore the file/),
    });
  });

  it('is not created if its files cannot be written', async () => {
    writeFileSync(state(), 'a file where the directory should be');
    await expect(authority().prepareRoot()).rejects.toThrow();
  });
});

describe('a plugged-in authority', () => {
  const keyOf = (): KeyObject => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  const life = () => ({ notBefore: new Date(now.getTime() - hour), notAfter: new Date(now.getTime() + 50 * hour) });

  function rootOf(commonName: string): Issuer {
    const privateKey = keyOf();
    return {
      privateKey,
      certificate: readCertificate(issueRoot(privateKey, { organization: 'a', commonName }, life())),
    };
  }

  function plug(root: Issuer, key = keyOf()): void {
    const subject = { organization: 'a', commonName: 'intermediate' };
    const certificate = readCertificate(issueIntermediate(root, createPublicKey(key), subject, life()));
    rmSync(plugged(), { recursive: true, force: true });
    const files = {
      'ca-key.pem': key.export({ format: 'pem', type: 'pkcs8' }) as string,
      'ca-cert.pem': certificate.pem,
      'cert-chain.pem': certificate.pem,
      'root-cert.pem': root.certificate.pem,
    };
    mkdirSync(plugged());
    for (const [name, content] of Object.entries(files)) writeFileSync(join(plugged(), name), content);
  }

  it('signs immediately after start', () => {
    plug(rootOf('root'));
    const one = authority();
    const loadResult = one.load();
    expect(loadResult).toMatchObject({ outcome: 'resumed', journal: { stage: 'steady', other: null } });
    expect(one.readCandidate((loadResult as { journal: { signer: string } }).journal.signer)).toEqual({
      outcome: 'same',
    });
  });

  const begunWith = (root: Issuer): { one: Authority; id: string } => {
    plug(root);
    const one = authority();
    const { journal } = one.load() as { journal: { stage: 'steady'; signer: string; other: null; tainted: null } };
    one.writeJournal(journal);
    return { one, id: journal.signer };
  };

  it('switches immediately to another intermediate of the same root, and starts a rotation for another root', () => {
    const root = rootOf('root');
    const { one, id } = begunWith(root);
    plug(root);
    const renewed = one.readCandidate(id);
    expect(renewed).toMatchObject({ outcome: 'renewed' });
    plug(rootOf('other'));
    expect(one.readCandidate((renewed as { id: string }).id)).toMatchObject({ outcome: 'replaced' });
  });

  it('does not use a reverted authority again until an operator orders this or replaces the authority, even after a restart', async () => {
    const { one, id } = begunWith(rootOf('root'));
    const [other, key] = [rootOf('other'), keyOf()];
    plug(other, key);
    const { id: next } = one.readCandidate(id) as { id: string };
    const steady: Journal = { stage: 'steady', signer: id, other: null, tainted: null };
    one.writeJournal({ ...steady, stage: 'trusting', other: next });
    one.writeJournal(steady);
    const restarted = authority();
    expect(restarted.load()).toEqual({ outcome: 'resumed', journal: steady });
    for (const someAuthority of [one, one, restarted, restarted])
      expect(someAuthority.readCandidate(id)).toEqual({ outcome: 'same' });
    expect(warnings.map(({ event }) => event)).toEqual(['authority.reverted', 'authority.reverted']);
    rmSync(plugged(), { recursive: true });
    expect(one.readCandidate(id)).toEqual({ outcome: 'same' });
    plug(other, key);
    expect(one.readCandidate(id)).toEqual({ outcome: 'same' });
    // An order `rotate` continues with the reverted authority, and is not reported as failed.
    expect(await restarted.prepareRoot()).toEqual({ id: next });
    restarted.writeJournal({ ...steady, stage: 'trusting', other: next });
    restarted.publishRoots([id, next]);
    restarted.signWith(id);
    expect(restarted.active?.authorities.map((authority) => authority.id)).toEqual([id, next]);
    plug(rootOf('third'));
    expect(one.readCandidate(id)).toMatchObject({ outcome: 'replaced' });
    plug(other, key);
    expect(one.readCandidate(id)).toEqual({ outcome: 'replaced', id: next });
  });

  it.each(['signing', 'dropping'])('does not use an authority again that was reverted in stage %s', (stage) => {
    const { one, id } = begunWith(rootOf('root'));
    plug(rootOf('other'));
    const { id: next } = one.readCandidate(id) as { id: string };
    const write = (stage: Journal['stage'], signer: string, other: string | null) =>
      one.writeJournal({ stage, signer, other, tainted: null });
    write('signing', next, id);
    if (stage === 'dropping') for (const later of ['dropping', 'trusting'] as const) write(later, next, id);
    for (const later of ['signing', 'dropping'] as const) write(later, id, next);
    write('steady', id, null);
    expect(one.readCandidate(id)).toEqual({ outcome: 'same' });
  });

  it('accepts a renewed intermediate, root or revocation list with the same key', () => {
    const [root, key] = [rootOf('root'), keyOf()];
    plug(root, key);
    const one = authority();
    const { journal } = one.load() as { journal: Journal };
    const id = journal.signer;
    const inForceAfter = (loadResult: object) => {
      expect(loadResult).toEqual({ outcome: 'renewed', id });
      one.writeJournal(journal);
      one.publishRoots([id]);
      one.signWith(id);
      expect(one.readCandidate(id)).toEqual({ outcome: 'same' });
      return one.active!;
    };
    one.publishRoots([id]);
    one.signWith(id);
    expect(one.readCandidate(id)).toEqual({ outcome: 'same' });
    pass(2 * hour);
    plug(root, key);
    expect(inForceAfter(one.readCandidate(id)).material.issuer.certificate.notBefore).toEqual(life().notBefore);
    const subject = { organization: 'a', commonName: 'root' };
    pass(2 * hour);
    const renewed = { ...root, certificate: readCertificate(issueRoot(root.privateKey, subject, life())) };
    plug(renewed, key);
    expect(inForceAfter(one.readCandidate(id)).bundle.roots).toEqual([renewed.certificate]);
    writeFileSync(join(plugged(), 'ca-crl.pem'), 'a list');
    expect(inForceAfter(one.readCandidate(id)).material.revocationLists).toBe('a list');
  });

  it('rejects another root with the current key, because its certificates would be indistinguishable', () => {
    const key = keyOf();
    plug(rootOf('root'), key);
    const one = authority();
    const { journal } = one.load() as { journal: Journal };
    plug(rootOf('other'), key);
    const reason = expect.stringContaining(`${plugged()} has a new root certificate with the key of the previous one`);
    expect(one.readCandidate(journal.signer)).toEqual({ outcome: 'refused', reason });
  });

  it('rejects the same files at start as at run time', () => {
    const [root, key] = [rootOf('root'), keyOf()];
    plug(root, key);
    const one = authority();
    const { journal } = one.load() as { journal: Journal };
    one.writeJournal(journal);
    plug(rootOf('other'), key);
    for (const nextAuthority of [authority(), authority()]) {
      expect(nextAuthority.load()).toEqual({ outcome: 'resumed', journal });
      nextAuthority.publishRoots([journal.signer]);
      nextAuthority.signWith(journal.signer);
      expect(nextAuthority.active?.bundle.roots).toEqual([root.certificate]);
      expect(nextAuthority.readCandidate(journal.signer)).toMatchObject({ outcome: 'refused' });
    }
    expect(warnings.map(({ event }) => event)).toEqual(Array(2).fill('authority.keyReused'));
  });

  it.each([
    ['an untainted', false],
    ['a tainted', true],
  ] as const)('starts a rotation from %s root if another root was plugged in before a start', (_, isTainted) => {
    const { one, id } = begunWith(rootOf('root'));
    const taintedId = isTainted ? id : null;
    one.writeJournal({ stage: 'steady', signer: id, other: null, tainted: taintedId });
    plug(rootOf('other'));
    expect(authority().load()).toEqual({
      outcome: 'resumed',
      journal: { stage: 'trusting', signer: id, other: expect.not.stringMatching(id), tainted: taintedId },
    });
  });

  it('keeps the taint of a root whose intermediate was replaced before a start', () => {
    const root = rootOf('root');
    const { one, id } = begunWith(root);
    one.writeJournal({ stage: 'steady', signer: id, other: null, tainted: id });
    plug(root);
    const { journal } = authority().load() as { journal: Journal };
    expect(journal.signer).not.toBe(id);
    expect(journal).toEqual({ stage: 'steady', signer: journal.signer, other: null, tainted: journal.signer });
  });

  it.each([
    ['another intermediate of the new root', (next: Issuer) => plug(next)],
    ['a third root', () => plug(rootOf('third'))],
  ])('waits until the certificates of the old root have expired before it accepts %s', (_, replace) => {
    const { one, id: oldId } = begunWith(rootOf('root'));
    const next = rootOf('next');
    plug(next);
    const { id: signer } = one.readCandidate(oldId) as { id: string };
    const signing: Journal = { stage: 'signing', signer, other: oldId, tainted: null };
    one.writeJournal(signing);
    replace(next);
    const nextAuthority = authority();
    expect(nextAuthority.load()).toEqual({ outcome: 'resumed', journal: signing });
    nextAuthority.publishRoots([signer, oldId]);
    nextAuthority.signWith(signer);
    expect(nextAuthority.active?.roots).toEqual([signer, oldId]);
    expect(warnings.map(({ event }) => event)).toEqual(['authority.postponed']);
    // The previous signer has expired, so the rotation does not wait for it.
    pass(51 * hour);
    replace(rootOf('next'));
    expect(authority().load()).toMatchObject({ outcome: 'resumed', journal: { other: null } });
  });

  it('warns that clients lose access if they trust only the previous root and its key is missing', () => {
    const { id } = begunWith(rootOf('root'));
    rmSync(join(state(), `${id}.key`));
    plug(rootOf('other'));
    expect(authority().load()).toMatchObject({ outcome: 'resumed', journal: { stage: 'steady' } });
    expect(warnings).toMatchObject([{ event: 'authority.previousUnreadable', previous: id }]);
  });

  it('never generates a new root, even on request', async () => {
    const { one, id } = begunWith(rootOf('root'));
    await expect(one.prepareRoot()).rejects.toThrow(`put the next one into ${plugged()}`);
    pass(45 * hour);
    expect(one.isRootDue(id)).toBe(false);
    expect(warnings).toMatchObject([{ event: 'authority.rootEnding', directory: plugged() }]);
  });

  it.each<[string, () => void, RegExp]>([
    [
      'another key',
      () => writeFileSync(join(plugged(), 'ca-key.pem'), keyOf().export({ format: 'pem', type: 'pkcs8' })),
      /ca-key.pem does not match .*ca-cert.pem/,
    ],
    [
      'another root',
      () => writeFileSync(join(plugged(), 'root-cert.pem'), rootOf('x').certificate.pem),
      /ca-cert.pem .* no valid chain to a root/,
    ],
    ['no root', () => rmSync(join(plugged(), 'root-cert.pem')), /root-cert.pem/],
    ['an empty certificate', () => writeFileSync(join(plugged(), 'ca-cert.pem'), ''), /ca-cert.pem is not valid PEM/],
    [
      'a leaf',
      () =>
        writeFileSync(join(plugged(), 'ca-cert.pem'), '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'),
      /is not an X.509 certificate/,
    ],
  ])('rejects %s at start and at run time', (_, damage, reason) => {
    const { one, id } = begunWith(rootOf('root'));
    damage();
    expect(one.readCandidate(id)).toEqual({ outcome: 'refused', reason: expect.stringMatching(reason) });
    expect(authority().load()).toEqual({ outcome: 'refused', reason: expect.stringMatching(reason) });
  });

  it('replaces a self-signed root by rotation', async () => {
    const { one, id } = await startedAuthority();
    plug(rootOf('root'));
    expect(one.readCandidate(id)).toMatchObject({ outcome: 'replaced' });
  });
});
