/** The faults of `npm run bench:faults`. Each is done to a subject that serves, under load. */
import { generateKeyPairSync } from 'node:crypto';
import { appendFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { loadAuthority } from '../certs/authority.ts';
import { swapMountedFiles } from '../certs/certificate-directory.ts';
import { eventually } from '../harness/eventually.ts';
import type { EnvoyProcess } from '../harness/host-processes.ts';
import type { Mesh } from '../harness/mesh.ts';
import { probe } from '../harness/probe.ts';
import { sharedMemoryFile } from './agent-usage.ts';
import type { Goal } from './fault-table.ts';
import { initializingBit, type Subject } from './subject.ts';

/** What a fault left to be reached: the certificate that has to be served in the end, and what was seen on the way. */
export interface Inflicted {
  /** When the damage was done, on the clock of `performance.now()`. */
  readonly atMs: number;
  /** Undefined: any certificate will do. */
  readonly serialNumber?: string;
  /** What the reader of the table has to know. */
  readonly note?: string;
}

export interface Fault {
  /** For the command line. */
  readonly name: string;
  /** For the table. */
  readonly what: string;
  /** What it may cost the agent. */
  readonly goal: Goal;
  /** Absent: a few of each kind. */
  readonly load?: 'many new connections';
  /** Both subjects run Envoy with a bootstrap file of the user's. */
  readonly ownBootstrap?: true;
  /** The load goes on for at least this long after the fault: late consequences count too. */
  readonly observeMs: number;
  inflict(mesh: Mesh, subject: Subject): Promise<Inflicted>;
}

const servedLimitMs = 30_000;
/** How long a bad or absent certificate stays. */
const badTimeMs = 5_000;
/** Into the start of an Envoy without shared memory, which does not tell how far it has come: about as far as one with it. */
const withoutBitMs = 50;
/** A child that lost its parent blocks and aborts within 15 s (spec/envoy-hot-restart.md fact 4). */
const doomMs = 17_000;
/** At most so many requests are in flight on one Envoy: see the clients in faults.ts. */
export const inFlight = 9;
const nothing: Goal = { failed: 0 };
const whatWasInFlight: Goal = { failed: inFlight };

export const faults: readonly Fault[] = [
  {
    name: 'none',
    what: 'no fault: a new certificate',
    goal: nothing,
    observeMs: 5_000,
    inflict: async (mesh) => ({ atMs: performance.now(), serialNumber: mesh.renewCertificate() }),
  },
  {
    name: 'start-killed',
    what: 'new certificate, its Envoy killed while it starts',
    goal: nothing,
    observeMs: 5_000,
    inflict: killWhileStarting,
  },
  {
    name: 'start-killed-for-good',
    what: 'the same, and shared memory that cannot be repaired',
    goal: { failedShareOfNew: 0.003 },
    load: 'many new connections',
    observeMs: 8_000,
    inflict: async (mesh, subject) => {
      const { baseId } = newestOf(subject);
      // Its size is one that nobody knows; Envoy itself does not mind.
      if (initializingBit(baseId) !== undefined) appendFileSync(sharedMemoryFile(baseId), 'x');
      return killWhileStarting(mesh, subject);
    },
  },
  {
    name: 'kill',
    what: 'kill -9 of the serving Envoy',
    goal: {},
    observeMs: 5_000,
    inflict: async (_, subject) => {
      return { atMs: kill(newestOf(subject)) };
    },
  },
  {
    name: 'bad-certificate',
    what: `garbage as certificate for ${badTimeMs / 1_000} s, then a good one`,
    goal: nothing,
    observeMs: 5_000,
    inflict: async (mesh) => {
      const atMs = performance.now();
      const garbage = 'this is not a certificate\n';
      swapMountedFiles(mesh.certificates.directory, { 'tls.crt': garbage, 'tls.key': garbage });
      await sleep(badTimeMs);
      return { atMs, serialNumber: mesh.renewCertificate() };
    },
  },
  {
    name: 'refused-certificate',
    what: `a certificate that Envoy refuses (RSA 1024) for ${badTimeMs / 1_000} s, then a good one`,
    goal: nothing,
    observeMs: 5_000,
    inflict: async (mesh) => {
      const { authorityDirectory, directory, hosts } = mesh.certificates;
      const read = (name: string): string => readFileSync(join(authorityDirectory, name), 'utf8');
      const weak = generateKeyPairSync('rsa', { modulusLength: 1024 });
      const issued = loadAuthority(read('ca.crt'), read('ca.key')).issue(hosts, weak);
      const atMs = performance.now();
      swapMountedFiles(directory, { 'tls.crt': issued.certificate, 'tls.key': issued.privateKey });
      await sleep(badTimeMs);
      return { atMs, serialNumber: mesh.renewCertificate() };
    },
  },
  {
    name: 'bad-bootstrap',
    what: `a restart with a bad bootstrap, which is mended after ${badTimeMs / 1_000} s`,
    goal: nothing,
    ownBootstrap: true,
    observeMs: 8_000,
    inflict: async (_, subject) => {
      const atMs = performance.now();
      const file = bootstrapFileOf(subject);
      const good = readFileSync(file, 'utf8');
      writeFileSync(file, good.replace('"static_resources"', '"no_such_field"'));
      process.kill(subject.program.pid, 'SIGHUP');
      await sleep(badTimeMs);
      writeFileSync(file, good);
      process.kill(subject.program.pid, 'SIGHUP');
      return { atMs };
    },
  },
  {
    name: 'no-certificate',
    what: `certificate files away for ${badTimeMs / 1_000} s, then new ones`,
    goal: nothing,
    observeMs: 5_000,
    inflict: async (mesh) => {
      const atMs = performance.now();
      // The links to it are left, as when a mounted Secret's content is away.
      rmSync(join(mesh.certificates.directory, '..data'));
      await sleep(badTimeMs);
      return { atMs, serialNumber: mesh.renewCertificate() };
    },
  },
  {
    name: 'crash-in-drain',
    what: 'new certificate, its Envoy killed -9 while the parent drains',
    goal: { refusedMs: 300 },
    observeMs: 8_000,
    inflict: async (mesh, subject) => {
      const serialNumber = await renewAndServe(mesh);
      const note = subject.envoys().length === 2 ? {} : { note: 'no parent was draining' };
      return { atMs: kill(newestOf(subject)), serialNumber, ...note };
    },
  },
  {
    name: 'parent-killed',
    what: 'new certificate, the draining parent killed -9',
    goal: whatWasInFlight,
    observeMs: doomMs,
    inflict: async (mesh, subject) => {
      const serialNumber = await renewAndServe(mesh);
      const [parent, child] = subject.envoys();
      const note = 'has no parent to kill: only the new certificate';
      if (child === undefined) return { atMs: performance.now(), serialNumber, note };
      return { atMs: kill(parent!), serialNumber };
    },
  },
];

async function killWhileStarting(mesh: Mesh, subject: Subject): Promise<Inflicted> {
  const before = newestOf(subject);
  const serialNumber = mesh.renewCertificate();
  const child = await eventually(
    'a new Envoy starts',
    () => subject.envoys().find(({ pid, epoch }) => pid !== before.pid && epoch >= before.epoch),
    { deadlineMs: servedLimitMs, everyMs: 1 },
  );
  // Earlier than this it would leave no trace in the shared memory.
  if (initializingBit(child.baseId) === undefined) await sleep(withoutBitMs);
  else await eventually('it is initializing', () => initializingBit(child.baseId), { everyMs: 1 });
  const atMs = kill(child);
  // The kernel needs a moment to end it; only then does nobody clear the bit any more.
  await eventually('it is gone', () => !subject.envoys().some(({ pid }) => pid === child.pid), { everyMs: 1 });
  const stuck = initializingBit(child.baseId) === true;
  return { atMs, serialNumber, ...(stuck && { note: 'the INITIALIZING bit was left set' }) };
}

async function renewAndServe(mesh: Mesh): Promise<string> {
  const serialNumber = mesh.renewCertificate();
  await eventually('the new certificate is served', () => servesCertificate(mesh, serialNumber), {
    deadlineMs: servedLimitMs,
  });
  return serialNumber;
}

/** Whether a new connection is answered now, with this certificate if one is named. */
export async function servesCertificate(mesh: Mesh, serialNumber: string | undefined): Promise<boolean> {
  const { outcome, serialNumber: served } = await probe(mesh.httpsTarget, { timeoutMs: 1_000 });
  return outcome.ok && (serialNumber === undefined || served === serialNumber);
}

/** The file that a subject's Envoys are started with; made for it where it is not a generated one. */
function bootstrapFileOf(subject: Subject): string {
  const { command } = newestOf(subject);
  return command[command.indexOf('-c') + 1]!;
}

function newestOf(subject: Subject): EnvoyProcess {
  const newest = subject.envoys().at(-1);
  if (newest === undefined) throw new Error(`${subject.name} has no Envoy`);
  return newest;
}

/** @returns when it was done. */
function kill({ pid }: EnvoyProcess): number {
  process.kill(pid, 'SIGKILL');
  return performance.now();
}
