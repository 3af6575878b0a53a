/**
 * With invalid or far too large files present, an edit of a valid file still reaches a connected client, and the program is ready, reports rejected
 * files, and continues.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import type { Program } from '../harness/program.ts';
import { sized } from '../harness/size-of-run.ts';
import { makeRoot, startAttackedServer } from './attacked-server.ts';
import { EndpointClient } from './endpoint-client.ts';

/** Limit on the names in all directories, for the case in which a tree exceeds it; the other cases use the default. */
const maxEntries = 2_000;
const manyFiles = sized({ short: 2_500, full: 5_000 });
/** A quiet machine needs a tenth of this time. Walking a link to /proc took all of it. */
const maxPushMs = 5_000;
/** Limit for the case of many files, which are read and pushed first; takes seconds on a busy machine. */
const maxReadMs = 40_000;
const edits = 4;

let root: string;
let server: Program;
let http: number;
let client: EndpointClient;

async function serve(env: Readonly<Record<string, string>>): Promise<void> {
  root = makeRoot();
  const [port, httpPort] = (await freePorts(2)) as [number, number];
  http = httpPort;
  server = await startAttackedServer(root, { port, http }, env);
  client = new EndpointClient(root, port);
  await client.subscribe();
}

async function end(): Promise<void> {
  client?.close();
  await server?.stop({ deadlineMs: 8_000 });
  rmSync(root, { recursive: true, force: true });
}

const path = (name: string): string => join(root, 'config', name);

function makeTree(): void {
  const tree = join(root, 'elsewhere');
  for (let i = 0; i < 2 * maxEntries; i++) {
    if (i < 100) mkdirSync(join(tree, String(i)), { recursive: true });
    writeFileSync(join(tree, String(i % 100), `${i}.yaml`), '');
  }
  symlinkSync(tree, path('tree'));
}

const service = (i: number): string => `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: s${i}, namespace: many}
spec: {hosts: [s${i}.example.com], resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}],
  endpoints: [{address: 10.9.0.1}]}
`;

/** @param refusedFile the file that is reported as rejected; absent if none is */
async function expectEditsDuring(appear: () => void, refusedFile?: string, maxMs = maxPushMs): Promise<void> {
  const fromLine = server.lines.length;
  appear();
  const took: number[] = [];
  for (let i = 0; i < edits; i++) {
    took.push(await client.push(maxMs));
    expect((await fetch(`http://127.0.0.1:${http}/ready`)).status).toBe(200);
  }
  expect(server.hopeless()).toBeUndefined();
  expect(Math.max(...took), `in ms: ${took.map(Math.round)}`).toBeLessThan(maxMs);
  if (refusedFile !== undefined)
    await eventually('what is refused is named', () =>
      server.lines.slice(fromLine).some((line) => line.includes(path(refusedFile))),
    );
}

describe('a configuration folder with hostile files', () => {
  beforeAll(() => serve({}));
  afterAll(end, 30_000);

  // The files are created one after the other and stay.
  test.each<[what: string, refused: string, appear: () => void]>([
    ['a link to /proc', 'proc', () => symlinkSync('/proc', path('proc'))],
    ['a named pipe', 'pipe.yaml', () => void execFileSync('mkfifo', [path('pipe.yaml')])],
    [
      'a file of 200 MB',
      'giant.yaml',
      () => {
        writeFileSync(path('giant.yaml'), '');
        truncateSync(path('giant.yaml'), 200_000_000);
      },
    ],
    ['a document with 200,000 levels', 'deep.yaml', () => writeFileSync(path('deep.yaml'), '['.repeat(200_000))],
  ])(
    'delays no endpoint change and is reported if it contains %s',
    (_, refusedFile, appear) => expectEditsDuring(appear, refusedFile),
    60_000,
  );

  test('delays no endpoint change and is reported if it contains thousands of new files', () => {
    const appear = (): void => {
      for (let i = 0; i < manyFiles; i++) writeFileSync(path(`s${i}.yaml`), service(i));
    };
    return expectEditsDuring(appear, undefined, maxReadMs);
  });
});

describe('a configuration folder with a limit of entries', () => {
  beforeAll(() => serve({ PILOT_CONFIG_MAX_ENTRIES: String(maxEntries) }));
  afterAll(end, 30_000);

  test(
    'delays no endpoint change if it contains a link to a tree that exceeds the limit',
    () => expectEditsDuring(makeTree, 'tree'),
    60_000,
  );
});
