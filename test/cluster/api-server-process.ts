/** A running API server with its own authority, administrator and folder. */
import { type ChildProcess, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CertificateAuthority, createAuthority } from '../certs/authority.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { isAlive } from '../harness/process-alive.ts';
import { endWithRunner } from '../harness/runner-watch.ts';
import { apiServer, findOrBuild } from './go-program.ts';

/** The data that a client needs, passed between processes. */
export interface ApiServerAddress {
  readonly url: string;
  /** CA certificate (PEM). */
  readonly ca: string;
  /** Token with all permissions (`system:masters`). */
  readonly adminToken: string;
  /** Keys of the server's authority and of service accounts, and the socket of the store. */
  readonly folder: string;
}

export interface RunningApiServer extends ApiServerAddress {
  readonly pid: number;
  /** Sends SIGKILL; `start` restarts the server with its stored data. */
  kill(): Promise<void>;
  /** Restarts a killed server at the same address. */
  start(): Promise<void>;
  /** Stops the server and removes its folder. */
  stop(): Promise<void>;
}

/** Network of the server, and its address for clients. */
export interface ApiServerPlace {
  /** Runs the given command in another network namespace. */
  readonly prefix: readonly string[];
  /** Port on which the server listens. */
  readonly port: number;
  /** Loopback port on which this process reaches the server. */
  readonly reachedAt: number;
  /** Hosts in the server's certificate, in addition to those of loopback. */
  readonly hosts: readonly string[];
  /**
   * Called when the server's files are written.
   * @returns additional flags
   */
  readonly prepare: (folder: string) => readonly string[];
}

/** Maximum time until the server is ready in milliseconds, next to ten other processes. */
const readyLimitMs = 120_000;
/** Admits test objects unchanged: no controller creates the service accounts that this plugin requires. */
const admission = '--disable-admission-plugins=ServiceAccount';

/**
 * @param flags flags in addition to those of a cluster
 * @param place default: a free port on loopback, without controllers
 */
export async function startApiServer(
  report: (line: string) => void = () => {},
  flags: readonly string[] = [],
  place?: ApiServerPlace,
): Promise<RunningApiServer> {
  const binary = await findOrBuild(apiServer, report);
  removeAbandoned();
  const folder = mkdtempSync(join(tmpdir(), `cp-kube-${process.pid}-`));
  const { prefix, port, reachedAt, hosts, prepare } = place ?? (await placeAtLoopback());
  const authority = createAuthority('kubernetes test authority');
  const adminToken = `admin-${crypto.randomUUID()}`;
  const address = {
    url: `https://127.0.0.1:${reachedAt}`,
    ca: authority.certificate,
    adminToken,
    folder,
  };
  writeFiles(folder, authority, adminToken, hosts);
  const command = [...prefix, binary, folder, ...serverFlags(folder, port), ...prepare(folder), ...flags];
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  let child = await run(command, address).catch((error: unknown) => {
    remove();
    throw error;
  });
  return {
    ...address,
    get pid() {
      return child.pid!;
    },
    async kill() {
      await end(child);
      for (const socket of ['control.sock', 'etcd.sock']) rmSync(join(folder, socket), { force: true });
    },
    async start() {
      child = await run(command, address);
    },
    async stop() {
      await end(child);
      remove();
    },
  };
}

/** Removes folders of killed runs: a store takes 130 MB. */
function removeAbandoned(): void {
  for (const name of readdirSync(tmpdir())) {
    const owner = Number(/^cp-kube-(\d+)-/.exec(name)?.[1]);
    if (owner > 0 && !isAlive(owner)) rmSync(join(tmpdir(), name), { recursive: true, force: true });
  }
}

async function placeAtLoopback(): Promise<ApiServerPlace> {
  const [port] = (await freePorts(1)) as [number];
  return {
    ...{ prefix: [], port, reachedAt: port, hosts: [] },
    prepare: () => [
      ...['--bind-address=127.0.0.1', '--advertise-address=127.0.0.1'],
      // Loopback is not a valid address of an endpoint.
      '--endpoint-reconciler-type=none',
      admission,
    ],
  };
}

function writeFiles(
  folder: string,
  authority: CertificateAuthority,
  adminToken: string,
  hosts: readonly string[],
): void {
  const server = authority.issue(['127.0.0.1', 'localhost', 'kubernetes.default.svc', ...hosts]);
  const accounts = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const files = {
    'ca.crt': authority.certificate,
    'ca.key': authority.privateKey,
    'server.crt': server.certificate,
    'server.key': server.privateKey,
    'accounts.key': accounts.privateKey.export({ type: 'pkcs8', format: 'pem' }),
    'accounts.pub': accounts.publicKey.export({ type: 'spki', format: 'pem' }),
    'tokens.csv': `${adminToken},admin,admin,"system:masters"\n`,
  };
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content, { mode: 0o600 });
}

function serverFlags(folder: string, port: number): string[] {
  const file = (name: string): string => join(folder, name);
  return [
    `--secure-port=${port}`,
    ...[`--tls-cert-file=${file('server.crt')}`, `--tls-private-key-file=${file('server.key')}`],
    ...[`--client-ca-file=${file('ca.crt')}`, `--cert-dir=${folder}`, `--token-auth-file=${file('tokens.csv')}`],
    ...['--authorization-mode=RBAC', '--service-account-issuer=https://kubernetes.default.svc'],
    `--service-account-key-file=${file('accounts.pub')}`,
    `--service-account-signing-key-file=${file('accounts.key')}`,
    ...['--service-cluster-ip-range=10.96.0.0/16', '--allow-privileged=true'],
    '--watch-cache-sizes=limitranges#0',
    // No request is throttled here, and classifying requests took a quarter of a start.
    '--enable-priority-and-fairness=false',
  ];
}

async function run([program = '', ...args]: readonly string[], address: ApiServerAddress): Promise<ChildProcess> {
  // The server exits when the pipe closes, so it exits with this process. Rarer garbage collection saves a seventh of a start's processor time, at
  // the cost of 90 MiB.
  const env = { ...process.env, GOGC: '400' };
  const child = spawn(program, args, { detached: true, stdio: ['pipe', 'ignore', 'pipe'], env });
  endWithRunner(child);
  child.stdin?.on('error', () => {});
  let output = '';
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    output = (output + chunk).slice(-4_000);
  });
  try {
    await eventually('the API server is ready', () => isReady(address), {
      ...{ deadlineMs: readyLimitMs, everyMs: 100 },
      hopeless: () => (child.exitCode === null ? undefined : `it ended with ${child.exitCode}`),
    });
  } catch (error) {
    child.kill('SIGKILL');
    throw new Error(`the API server does not run:\n${output}`, { cause: error });
  }
  return child;
}

/** Sends SIGKILL: the data is not needed, and after SIGTERM the server waits a minute for its watches. */
async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closeEvent = once(child, 'close');
  child.kill('SIGKILL');
  await closeEvent;
}

function isReady({ url, ca, adminToken }: ApiServerAddress): Promise<boolean> {
  const headers = { authorization: `Bearer ${adminToken}` };
  return new Promise((resolve, reject) => {
    const sentRequest = request(`${url}/readyz`, { ca, headers, agent: false, timeout: 5_000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    sentRequest.on('error', reject);
    sentRequest.on('timeout', () => sentRequest.destroy(new Error('no answer')));
    sentRequest.end();
  });
}

/** Removes the history of the store. */
export function compact({ folder }: Pick<ApiServerAddress, 'folder'>): Promise<void> {
  return new Promise((resolve, reject) => {
    const sentRequest = httpRequest(
      { socketPath: join(folder, 'control.sock'), path: '/compact', method: 'POST', agent: false },
      (response) => {
        response.resume();
        if (response.statusCode === 200) resolve();
        else reject(new Error(`the store was not compacted: ${response.statusCode}`));
      },
    );
    sentRequest.on('error', reject);
    sentRequest.end();
  });
}
