/** Each command in "On-call questions" of docs/operations.md runs and has the described output. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import type { Command } from 'commander';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { explainCommand } from '../src/cli/commands/explain.ts';
import { certificatesCommand } from '../src/cli/commands/remote/certificates.ts';
import { changesCommand } from '../src/cli/commands/remote/changes.ts';
import { requestCommand } from '../src/cli/commands/request.ts';
import { packageRoot } from '../src/runtime/package-root.ts';
import type { SotwStream } from './ads-client.ts';
import { ControlPlane, stopControlPlanes } from './harness/control-plane.ts';
import { eventually } from './harness/eventually.ts';

const page = readFileSync(join(packageRoot(), 'docs/operations.md'), 'utf8');
const section = page.slice(page.indexOf('## On-call questions'), page.indexOf('## Debug pages'));

/** Lines of the shell blocks below a heading. */
function commandsOf(heading: string): string[] {
  const text = new RegExp(`\n### ${heading}\n(.*?)(?=\n### |$)`, 's').exec(section)?.[1];
  if (text === undefined) throw new Error(`docs/operations.md has no question "${heading}"`);
  return [...text.matchAll(/^```sh\n(.*?)^```/gms)].flatMap(([, block]) => block!.trim().split('\n'));
}

let root: string;
let plane: ControlPlane;
let stream: SotwStream;

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'chartpilot-on-call-'));
  plane = await startControlPlane(join(root, 'ca'));
});

afterEach(async () => {
  await stopControlPlanes();
  rmSync(root, { recursive: true });
});

async function startControlPlane(ca: string): Promise<ControlPlane> {
  mkdirSync(ca, { recursive: true, mode: 0o700 });
  const one = ControlPlane.starting({ secureGRPCAddr: '127.0.0.1:0' }, undefined, { SELF_SIGNED_CA_DIR: ca });
  await one.ready();
  ({ stream } = await one.subscribe());
  return one;
}

/** Runs a line `pilot-discovery …` of the page against the control plane of the test. */
async function run(line: string): Promise<string> {
  const tokens = [...line.replace(/ +#.*$/, '').matchAll(/'([^']*)'|(\S+)/g)].map(
    ([, quotedToken, bareToken]) => quotedToken ?? bareToken!,
  );
  const [program, name, ...args] = tokens;
  expect(program, line).toBe('pilot-discovery');
  const port = plane.port('http.listening');
  let printedText = '';
  const print = (text: string): void => {
    printedText += text;
  };
  const at = { host: '127.0.0.1', defaultPort: port, allowedPorts: [], target: 'a test', example: '', failed: 1 };
  const remote = ['--from', `127.0.0.1:${port}`];
  const onPort = args.map((arg) => arg.replace('127.0.0.1:15014', `127.0.0.1:${port}`));
  const commands: Readonly<Record<string, readonly [Command, readonly string[]]>> = {
    changes: [changesCommand(print), remote],
    certificates: [certificatesCommand(print), remote],
    explain: [explainCommand(print), []],
    request: [requestCommand(at, print), []],
  };
  const [command, extraArgs] = commands[name!] ?? [];
  if (command === undefined) throw new Error(`${line}: unknown command`);
  await command.parseAsync([...onPort, ...extraArgs!], { from: 'user' });
  return printedText;
}

function respond(rejection?: string): void {
  const { versionInfo, nonce, typeUrl } = stream.responses.at(-1)!;
  const ackFields = rejection === undefined ? { versionInfo } : { errorDetail: { code: 3, message: rejection } };
  stream.send({ typeUrl, responseNonce: nonce, ...ackFields });
}

async function changeClusters(): Promise<void> {
  plane.write(
    'rule.yaml',
    'apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: cart, namespace: shop}\nspec: {host: cart.example.com, trafficPolicy: {connectionPool: {tcp: {connectTimeout: 1s}}}}\n',
  );
  await stream.next();
}

it('the commands of "Why is this proxy stale" show the unacknowledged response', async () => {
  respond();
  await changeClusters();
  const [proxyz, changes, all] = commandsOf('Why is this proxy stale');
  expect(JSON.parse(await run(proxyz!))).toMatchObject([
    { worst: 'STALE', types: [{ state: 'STALE', pending: 'the ACK of the last response' }] },
  ]);
  expect(await run(changes!)).toMatch(
    /1 pending\n.*added DestinationRule shop\/cart.*no response from sidecar~\S+web-0/s,
  );
  expect(JSON.parse(await run(all!))[0]).toMatchObject({ worst: 'STALE' });
});

it('the commands of "Which change broke 14:05" and "Which proxy rejected what" show the change and the rejection', async () => {
  respond();
  await changeClusters();
  respond('no such thing');
  const rejectionsCommand = commandsOf('Which proxy rejected what')[0]!;
  await eventually('the rejection is shown', async () =>
    /rejected by .*: no such thing/.test(await run(rejectionsCommand)),
  );
  const [changes] = commandsOf('Which change broke 14:05');
  expect(changes).toBe('pilot-discovery changes --since 14:00 --until 14:10');
  // A relative time of the same form, because the change is recent. One minute ago is on another day only at midnight.
  const text = await run(changes!.replace('14:00', '1m').replace(/ --until \S+/, ''));
  expect(text).toContain('added DestinationRule shop/cart');
});

it('the command of "Which certificate expires next" shows the server certificate', async () => {
  expect(await run(commandsOf('Which certificate expires next')[0]!)).toMatch(/server +secure xDS port and webhooks/);
});

it('the command of "How much memory" shows the resident memory', async () => {
  const [metrics] = commandsOf('How much memory do 2,000 proxies take');
  expect(await run(metrics!)).toMatch(/^process_resident_memory_bytes \d+$/m);
});

it('the commands of "Debug one proxy" show its configuration and the route of a request', async () => {
  respond();
  const [dump, ...moreLines] = commandsOf('Debug one proxy').filter((line) => line.startsWith('pilot-discovery'));
  expect(await run(dump!)).toContain('outbound|80||cart.example.com');
  for (const line of moreLines) expect(await run(line)).not.toBe('');
});

it('a drained replica ends its streams with OK and exits with 0', async () => {
  respond();
  plane.signal();
  expect((await stream.ended).code).toBe(status.OK);
  expect((await plane.ended).exitCode).toBe(0);
});

it('a restored authority directory contains the same root', async () => {
  const [pack, unpack] = commandsOf('Back up and restore');
  const certificate = readFileSync(join(root, 'ca/root-cert.pem'), 'utf8');
  await stopControlPlanes();
  const shell = (line: string): unknown => execFileSync('sh', ['-c', line], { cwd: root, stdio: 'pipe' });
  shell(pack!);
  expect(statSync(join(root, 'ca.tar.gz')).mode & 0o077).toBe(0);
  shell(unpack!);
  plane = await startControlPlane(join(root, 'ca'));
  expect(readFileSync(join(root, 'ca/root-cert.pem'), 'utf8')).toBe(certificate);
  expect(plane.troubles().join()).not.toMatch(/authority/i);
});
