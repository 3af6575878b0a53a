/** Faults of `npm run bench:faults`, each injected while the subject serves load. */
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
import type { FaultGoal } from './fault-table.ts';
import { type FaultSubject, initializingBit } from './subject.ts';

/** An injected fault, and the certificate that must finally be served. */
export interface InjectedFault {
  /** Time of the fault on the clock of `performance.now()`. */
  readonly atMs: number;
  /** `undefined` if any certificate is accepted. */
  readonly serialNumber?: string;
  /** Note for readers of the table. */
  readonly note?: string;
}

export interface BenchFault {
  readonly name: string;
  /** Row title of the table. */
  readonly title: string;
  /** Maximum cost for the agent. */
  readonly goal: FaultGoal;
  /** By default, the load has a few clients of each kind. */
  readonly load?: 'many new connections';
  /** Both subjects run Envoy with a custom bootstrap file. */
  readonly customBootstrap?: true;
  /** Minimum time that the load continues after the fault, so that late effects are measured. */
  readonly observeMs: number;
  inject(mesh: Mesh, subject: FaultSubject): Promise<InjectedFault>;
}

const servedLimitMs = 30_000;
/** Time until an invalid or absent certificate is replaced. */
const faultDurationMs = 5_000;
/**
 * Delay before an Envoy without shared memory is killed during its start, because it does not report its progress. Roughly the time at which one with
 * shared memory sets its bit.
 */
const maxMsWithoutSharedMemory = 50;
/** A child that lost its parent blocks and aborts within 15 s (docs/hot-restart-reference.md, fact 4). */
const orphanExitMs = 17_000;
/** Maximum concurrent requests on one Envoy: see the clients in faults.ts. */
export const inFlight = 9;
const noFailures: FaultGoal = { failed: 0 };
const inFlightOnly: FaultGoal = { failed: inFlight };

export const faults: readonly BenchFault[] = [
  {
    name: 'none',
    title: 'no fault: a new certificate',
    goal: noFailures,
    observeMs: 5_000,
    inject: async (mesh) => ({ atMs: performance.now(), serialNumber: mesh.renewCertificate() }),
  },
  {
    name: 'start-killed',
    title: 'new certificate, its Envoy killed while it starts',
    goal: noFailures,
    observeMs: 5_000,
    inject: killWhileStarting,
  },
  {
    name: 'start-killed-for-good',
    title: 'the same, and shared memory that cannot be repaired',
    goal: { failedShareOfNew: 0.003 },
    load: 'many new connections',
    observeMs: 8_000,
    inject: async (mesh, subject) => {
      const { baseId } = newestOf(subject);
      // The agent does not recognize this size. Envoy ignores it.
      if (initializingBit(baseId) !== undefined) appendFileSync(sharedMemoryFile(baseId), 'x');
      return killWhileStarting(mesh, subject);
    },
  },
  {
    name: 'kill',
    title: 'kill -9 of the serving Envoy',
    goal: {},
    observeMs: 5_000,
    inject: async (_, subject) => {
      return { atMs: kill(newestOf(subject)) };
    },
  },
  {
    name: 'bad-certificate',
    title: `garbage as certificate for ${faultDurationMs / 1_000} s, then a good one`,
    goal: noFailures,
    observeMs: 5_000,
    inject: async (mesh) => {
      const atMs = performance.now();
      const garbage = 'this is not a certificate\n';
      swapMountedFiles(mesh.certificates.directory, { 'tls.crt': garbage, 'tls.key': garbage });
      await sleep(faultDurationMs);
      return { atMs, serialNumber: mesh.renewCertificate() };
    },
  },
  {
    name: 'refused-certificate',
    title: `a certificate that Envoy refuses (RSA 1024) for ${faultDurationMs / 1_000} s, then a good one`,
    goal: noFailures,
    observeMs: 5_000,
    inject: async (mesh) => {
      const { authorityDirectory, directory, hosts } = mesh.certificates;
      const read = (name: string): string => readFileSync(join(authorityDirectory, name), 'utf8');
      const weak = generateKeyPairSync('rsa', { modulusLength: 1024 });
      const issuedCertificate = loadAuthority(read('ca.crt'), read('ca.key')).issue(hosts, weak);
      const atMs = performance.now();
      swapMountedFiles(directory, {
        'tls.crt': issuedCertificate.certificate,
        'tls.key': issuedCertificate.privateKey,
      });
      await sleep(faultDurationMs);
      return { atMs, serialNumber: mesh.renewCertificate() };
    },
  },
  {
    name: 'bad-bootstrap',
    title: `a restart with a bad bootstrap, which is mended after ${faultDurationMs / 1_000} s`,
    goal: noFailures,
    customBootstrap: true,
    observeMs: 8_000,
    inject: async (_, subject) => {
      const atMs = performance.now();
      const file = bootstrapFileOf(subject);
      const validText = readFileSync(file, 'utf8');
      writeFileSync(file, validText.replace('"static_resources"', '"no_such_field"'));
      process.kill(subject.program.pid, 'SIGHUP');
      await sleep(faultDurationMs);
      writeFileSync(file, validText);
      process.kill(subject.program.pid, 'SIGHUP');
      return { atMs };
    },
  },
  {
    name: 'no-certificate',
    title: `certificate files away for ${faultDurationMs / 1_000} s, then new ones`,
    goal: noFailures,
    observeMs: 5_000,
    inject: async (mesh) => {
      const atMs = performance.now();
      // Dangling links remain, as if the content of a mounted Secret disappears.
      rmSync(join(mesh.certificates.directory, '..data'));
      await sleep(faultDurationMs);
      return { atMs, serialNumber: mesh.renewCertificate() };
    },
  },
  {
    name: 'crash-in-drain',
    title: 'new certificate, its Envoy killed -9 while the parent drains',
    goal: { refusedMs: 300 },
    observeMs: 8_000,
    inject: async (mesh, subject) => {
      const serialNumber = await renewAndServe(mesh);
      const note = subject.envoys().length === 2 ? {} : { note: 'no parent was draining' };
      return { atMs: kill(newestOf(subject)), serialNumber, ...note };
    },
  },
  {
    name: 'parent-killed',
    title: 'new certificate, the draining parent killed -9',
    goal: inFlightOnly,
    observeMs: orphanExitMs,
    inject: async (mesh, subject) => {
      const serialNumber = await renewAndServe(mesh);
      const [parent, child] = subject.envoys();
      const note = 'has no parent to kill: only the new certificate';
      if (child === undefined) return { atMs: performance.now(), serialNumber, note };
      return { atMs: kill(parent!), serialNumber };
    },
  },
];

async function killWhileStarting(mesh: Mesh, subject: FaultSubject): Promise<InjectedFault> {
  const previous = newestOf(subject);
  const serialNumber = mesh.renewCertificate();
  const child = await eventually(
    'a new Envoy starts',
    () => subject.envoys().find(({ pid, epoch }) => pid !== previous.pid && epoch >= previous.epoch),
    { deadlineMs: servedLimitMs, everyMs: 1 },
  );
  // An earlier kill would leave no trace in the shared memory.
  if (initializingBit(child.baseId) === undefined) await sleep(maxMsWithoutSharedMemory);
  else await eventually('it is initializing', () => initializingBit(child.baseId), { everyMs: 1 });
  const atMs = kill(child);
  // The kernel takes a moment to end the process, which could clear the bit until then.
  await eventually('the process has exited', () => !subject.envoys().some(({ pid }) => pid === child.pid), {
    everyMs: 1,
  });
  const isStuck = initializingBit(child.baseId) === true;
  return { atMs, serialNumber, ...(isStuck && { note: 'the INITIALIZING bit was left set' }) };
}

async function renewAndServe(mesh: Mesh): Promise<string> {
  const serialNumber = mesh.renewCertificate();
  await eventually('the new certificate is served', () => servesCertificate(mesh, serialNumber), {
    deadlineMs: servedLimitMs,
  });
  return serialNumber;
}

/** Whether a new connection now succeeds, with this certificate if given. */
export async function servesCertificate(mesh: Mesh, serialNumber: string | undefined): Promise<boolean> {
  const { outcome, serialNumber: servedSerial } = await probe(mesh.httpsTarget, { timeoutMs: 1_000 });
  return outcome.ok && (serialNumber === undefined || servedSerial === serialNumber);
}

/** Path of the bootstrap file of a subject's Envoys; the file is created if the subject does not use a generated one. */
function bootstrapFileOf(subject: FaultSubject): string {
  const { command } = newestOf(subject);
  return command[command.indexOf('-c') + 1]!;
}

function newestOf(subject: FaultSubject): EnvoyProcess {
  const newest = subject.envoys().at(-1);
  if (newest === undefined) throw new Error(`${subject.name} has no Envoy`);
  return newest;
}

/** @returns the time of the signal */
function kill({ pid }: EnvoyProcess): number {
  process.kill(pid, 'SIGKILL');
  return performance.now();
}
