import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createActor, type EventObject, setup } from 'xstate';
import type { ProcessExited, ProcessSignal } from '../../../machines/agent/protocol.ts';
import {
  adminAt,
  envoyBinary,
  freePort,
  temporaryFolder,
  temporaryScratch,
  testFlags,
  writeAdminOnlyBootstrap,
} from '../../../test/fixtures/real-envoy.ts';
import { createLogger } from '../../runtime/output/log.ts';
import type { TraceBody } from '../../runtime/trace/trace.ts';
import { createAdminClient } from '../admin/admin-client.ts';
import { claimBaseId } from './base-ids/base-ids.ts';
import { envoyProcess } from './envoy-process.ts';
import type { OutOfMemoryCounter } from './out-of-memory.ts';
import { parentDeathGuard } from './parent-death.ts';
import { ProcessTable } from './process-table.ts';
import type { ScratchParent } from './scratch-folder.ts';

let guard: readonly string[];

beforeAll(async () => {
  guard = await parentDeathGuard();
});

interface Running {
  readonly table: ProcessTable;
  readonly log: string[];
  /** Entries in the trace. */
  readonly records: TraceBody[];
  readonly adminPort: number;
  readonly baseId: number;
  readonly epoch: number;
  order(signal: ProcessSignal['signal']): void;
  event<T extends EventObject>(type: T['type']): Promise<T>;
  stop(): void;
}

/** Starts one Envoy under a machine that records the events of the process actor. */
async function run(
  options: {
    binary?: string;
    configFile?: string;
    guard?: readonly string[];
    outOfMemoryKills?: OutOfMemoryCounter;
    scratch?: readonly ScratchParent[];
    /** Folder of an Envoy that outlives its agent. */
    heldIn?: string;
    /** The parent of this Envoy in a hot restart. */
    parent?: Running;
    bootstrap?: (folder: string, adminPort: number) => string;
  } = {},
): Promise<Running> {
  const folder = temporaryFolder();
  const claimedId = options.parent === undefined ? await claimBaseId({ runDir: join(folder.path, 'run') }) : undefined;
  const baseId = claimedId?.baseId ?? options.parent!.baseId;
  const epoch = options.parent === undefined ? 0 : options.parent.epoch + 1;
  const adminPort = options.parent?.adminPort ?? (await freePort());
  const table = new ProcessTable();
  const log: string[] = [];
  const records: TraceBody[] = [];
  const events: EventObject[] = [];
  const logic = envoyProcess({
    binaries: { pathOf: () => options.binary ?? envoyBinary() },
    flags: testFlags,
    table,
    adminAt,
    guard: options.guard ?? guard,
    scratch: options.scratch ?? temporaryScratch(),
    ...(options.heldIn && { held: { recordStart: () => options.heldIn!, folderOf: () => options.heldIn } }),
    recorder: { record: (body) => records.push(body) },
    outOfMemoryKills: options.outOfMemoryKills ?? (() => undefined),
    log: createLogger({ write: (line) => log.push(line) }).scope('envoy'),
  });
  const parent = setup({ actors: { logic } }).createMachine({
    invoke: {
      id: 'process',
      src: 'logic',
      input: {
        epoch,
        baseId,
        adminPort,
        binary: 'first',
        configFile: options.configFile ?? (options.bootstrap ?? writeAdminOnlyBootstrap)(folder.path, adminPort),
      },
    },
    on: { '*': { actions: ({ event }) => void events.push(event) } },
  });
  const actor = createActor(parent, { id: `epoch-${epoch}` }).start();
  onTestFinished(async () => {
    actor.stop();
    await table.endAll();
    claimedId?.release();
    folder[Symbol.dispose]();
  });
  return {
    table,
    log,
    records,
    adminPort,
    baseId,
    epoch,
    order: (signal) => actor.getSnapshot().children.process!.send({ type: 'process.signal', signal }),
    async event<T extends EventObject>(type: T['type']): Promise<T> {
      for (let waited = 0; waited < 15_000; waited += 10) {
        const matchingEvent = events.find((event) => event.type === type);
        if (matchingEvent !== undefined) return matchingEvent as T;
        await sleep(10);
      }
      throw new Error(`no ${type} in 15 s; told were ${events.map((event) => event.type).join(', ')}\n${log.join('')}`);
    },
    stop: () => void actor.stop(),
  };
}

async function live({ adminPort, epoch }: Running): Promise<void> {
  const admin = createAdminClient('127.0.0.1', adminPort);
  // During a hand-over the admin interface is closed for a moment.
  const epochOf = async (): Promise<number> => (await admin.serverInfo()).epoch;
  while ((await epochOf().catch(() => -1)) !== epoch || !(await admin.state()).live) await sleep(5);
}

test('runs Envoy until SIGTERM, and reports exit code 0', async () => {
  const envoy = await run();
  const { pid } = await envoy.event<{ type: string; pid: number }>('process.spawned');
  await live(envoy);
  expect(envoy.table.list()).toMatchObject([{ pid, epoch: 0 }]);
  // All lines of Envoy's stderr are logged with their level.
  const lastLine = /\tinfo\tenvoy\t.*starting main dispatch loop/;
  await expect.poll(() => envoy.log.some((line) => lastLine.test(line))).toBe(true);
  envoy.order('SIGTERM');
  expect(await envoy.event('process.exited')).toMatchObject({ code: 0, signal: null, refusedByParent: false });
  expect(envoy.table.list()).toEqual([]);
});

test("records Envoy's log lines under the name of its actor until the actor stops", async () => {
  const envoy = await run();
  await live(envoy);
  const main = { kind: 'log', actor: 'epoch-0/process', level: 'info', component: 'main' };
  expect(envoy.records).toContainEqual({ ...main, text: expect.stringContaining('starting main dispatch loop') });
  const recordedCount = envoy.records.length;
  envoy.stop();
  while (envoy.table.list().length > 0) await sleep(10);
  expect(envoy.records.length).toBe(recordedCount);
});

test('reports why Envoy rejected its bootstrap', async () => {
  const envoy = await run({ configFile: '/nowhere/bootstrap.json' });
  const exit = await envoy.event<ProcessExited>('process.exited');
  expect(exit.code).toBe(1);
  expect(exit.lastOutput).toContain('Invalid path: /nowhere/bootstrap.json');
});

test('distinguishes a kill by another process from one by the agent', async () => {
  const killedByOther = await run();
  const { pid } = await killedByOther.event<{ type: string; pid: number }>('process.spawned');
  await live(killedByOther);
  process.kill(pid, 'SIGKILL');
  expect(await killedByOther.event('process.exited')).toMatchObject({
    code: null,
    signal: 'SIGKILL',
    lastOutput: 'killed by another process or the kernel, possibly out of memory',
  });
  const killedByAgent = await run();
  await live(killedByAgent);
  killedByAgent.order('SIGKILL');
  expect(await killedByAgent.event('process.exited')).toMatchObject({ signal: 'SIGKILL', lastOutput: '' });
});

test.each([
  [[0, 1], true, 'killed by the kernel, out of memory (oom_kill 0 → 1)'],
  [[4, 4], false, 'killed by another process (the kernel reports no out-of-memory kill)'],
  [[], false, 'killed by another process or the kernel, possibly out of memory'],
])(
  'determines from the OOM counter (%j at start and exit) whether the kernel killed Envoy out of memory (S25)',
  async (counter, outOfMemory, lastOutput) => {
    const readings = [...counter];
    const envoy = await run({ outOfMemoryKills: () => readings.shift() });
    const { pid } = await envoy.event<{ type: string; pid: number }>('process.spawned');
    process.kill(pid, 'SIGKILL');
    expect(await envoy.event('process.exited')).toMatchObject({ signal: 'SIGKILL', outOfMemory, lastOutput });
  },
);

test('never reports a kill by the agent as out of memory, regardless of the OOM counter', async () => {
  const readings = [0, 1];
  const envoy = await run({ outOfMemoryKills: () => readings.shift() });
  await envoy.event('process.spawned');
  envoy.order('SIGKILL');
  expect(await envoy.event('process.exited')).toMatchObject({ signal: 'SIGKILL', outOfMemory: false });
});

test('kills Envoy when its actor is stopped', async () => {
  const envoy = await run();
  const { pid } = await envoy.event<{ type: string; pid: number }>('process.spawned');
  envoy.stop();
  for (let waited = 0; waited < 5_000 && envoy.table.list().length > 0; waited += 10) await sleep(10);
  expect(envoy.table.list()).toEqual([]);
  expect(existsSync(`/proc/${pid}`)).toBe(false);
});

describe('killed child epoch', () => {
  const pidOf = async (envoy: Running): Promise<number> =>
    (await envoy.event<{ type: string; pid: number }>('process.spawned')).pid;

  async function endOfChild(options: Parameters<typeof run>[0], waitFor: (child: Running) => Promise<void>) {
    const parent = await run();
    await live(parent);
    const child = await run({ parent, ...options });
    const pid = await pidOf(child);
    await waitFor(child);
    process.kill(pid, 'SIGKILL');
    return child.event<ProcessExited>('process.exited');
  }

  /** A bootstrap whose cluster waits for an unreachable control plane. */
  function writeWaitingBootstrap(folder: string, adminPort: number): string {
    const file = writeAdminOnlyBootstrap(folder, adminPort);
    const bootstrap = JSON.parse(readFileSync(file, 'utf8'));
    const cluster = {
      ...{ name: 'never', type: 'EDS', connect_timeout: '1s' },
      eds_cluster_config: {
        eds_config: {
          ...{ resource_api_version: 'V3', initial_fetch_timeout: '0s' },
          api_config_source: {
            ...{ api_type: 'GRPC', transport_api_version: 'V3' },
            grpc_services: [{ envoy_grpc: { cluster_name: 'nobody' } }],
          },
        },
      },
    };
    const unreachable = {
      ...{ name: 'nobody', type: 'STATIC', connect_timeout: '1s', http2_protocol_options: {} },
      load_assignment: { cluster_name: 'nobody', endpoints: [] },
    };
    writeFileSync(file, JSON.stringify({ ...bootstrap, static_resources: { clusters: [unreachable, cluster] } }));
    return file;
  }

  test('has taken over if it was live, even if no probe observed this', async () => {
    const exit = await endOfChild({}, live);
    expect(exit).toMatchObject({ signal: 'SIGKILL', tookOverWithinMs: expect.any(Number) });
  });

  test('has not taken over if it was initializing', async () => {
    const exit = await endOfChild({ bootstrap: writeWaitingBootstrap }, async ({ adminPort }) => {
      const admin = createAdminClient('127.0.0.1', adminPort);
      await expect.poll(async () => (await admin.state()).detail, { interval: 10 }).toMatch(/INITIALIZING$/);
    });
    expect(exit).toMatchObject({ signal: 'SIGKILL' });
    expect(exit).not.toHaveProperty('tookOverWithinMs');
  });

  test('has not taken over if it had not attached', async () => {
    // Envoy attaches to its parent within milliseconds; this program never attaches, however late the signal arrives.
    const notYet = ['/bin/sh', '-c', 'exec sleep 30'];
    const exit = await endOfChild({ guard: notYet }, async () => {});
    expect(exit).toMatchObject({ signal: 'SIGKILL' });
    expect(exit).not.toHaveProperty('tookOverWithinMs');
  });

  test('has not taken over if it was the first epoch, without a parent', async () => {
    const envoy = await run();
    await live(envoy);
    process.kill(await pidOf(envoy), 'SIGKILL');
    expect(await envoy.event('process.exited')).not.toHaveProperty('tookOverWithinMs');
  });
});

test('leaves an unreported exit to the agent that takes over', async () => {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const [heldIn, binary] = [join(folder.path, 'held'), join(folder.path, 'envoy')];
  // Keeps its output open, so that the report of the exit waits.
  writeFileSync(binary, '#!/bin/sh\nsleep 1 &\nexit 0\n', { mode: 0o755 });
  const envoy = await run({ heldIn, binary });
  while (!existsSync(join(heldIn, 'exit'))) await sleep(5);
  await sleep(50);
  envoy.table.handOver();
  envoy.stop();
  await sleep(400);
  expect(readFileSync(join(heldIn, 'exit'), 'utf8')).toBe('0\n');
});

test('reports a failure if the arguments are too long for the operating system', async () => {
  const envoy = await run({ guard: ['/bin/sh', '-c', 'exit 0', 'x'.repeat(200_000)] });
  expect(await envoy.event('process.failed')).toMatchObject({ reason: expect.stringContaining('E2BIG') });
});

test('lists no Envoy in the process table if its binary does not exist', async () => {
  const envoy = await run({ binary: '/nowhere/envoy' });
  expect(await envoy.event('process.failed')).toMatchObject({ reason: expect.stringContaining('/nowhere/envoy') });
  expect(envoy.table.list()).toEqual([]);
});

test('lists Envoy in the process table until the table ends all processes', async () => {
  const envoy = await run();
  const { pid } = await envoy.event<{ type: string; pid: number }>('process.spawned');
  expect(await envoy.table.endAll()).toMatchObject([{ pid, epoch: 0 }]);
  expect(envoy.table.list()).toEqual([]);
});
