/** Effects of a hand-over that exceed the limits of their charts must not disturb the agent in control. */
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { type AnyActorLogic, type AnyEventObject, createActor, fromCallback, sendTo, setup } from 'xstate';
import type { LinkOrder, TakeoverConfirm } from '../../../machines/agent/succession-protocol.ts';
import { temporaryFolder } from '../../../test/fixtures/real-envoy.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { silentLogger } from '../../runtime/output/log.ts';
import { Ownership } from '../../runtime/ownership.ts';
import { BaseIdTable } from '../envoy/base-ids/base-id-table.ts';
import { ProcessTable } from '../envoy/process-table.ts';
import type { AgentRecord } from '../envoy/record/agent-record.ts';
import type { StoredFiles } from '../envoy/record/stored-files.ts';
import type { Inheritance } from './agent-replacement.ts';
import { predecessorWithEffects } from './predecessor.effects.ts';
import { successorWithEffects } from './successor.effects.ts';

let finishSlowTask: (() => void) | undefined;
beforeEach(() => {
  finishSlowTask = undefined;
});
/** Takes longer than on a slow disk or a busy host. */
const runSlowTask = (): Promise<void> =>
  new Promise((resolve) => {
    finishSlowTask = resolve;
  });

class CountedIds extends BaseIdTable {
  held = false;
  override async resume(): Promise<{ baseIds: number[]; sweptFiles: string[] }> {
    this.held = true;
    return { baseIds: [7], sweptFiles: [] };
  }
  override handOverAll(): void {
    this.held = false;
  }
}

/** Builds an agent with one slow component. */
function createAgent(slowly: 'the stored files' | 'the ports' | 'nothing') {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const [table, baseIds, ownership] = [new ProcessTable(), new CountedIds(), new Ownership(true)];
  if (slowly === 'the ports') {
    let isFirst = true;
    ownership.onAcquired(() => {
      const taking = isFirst ? undefined : runSlowTask();
      isFirst = false;
      return taking;
    });
  }
  const record = {
    directory: folder.path,
    baseIds: [7],
    throwIfWriteFailed: () => {},
    read: async () => undefined,
    startRecording: () => {},
  };
  const storedFiles = {
    read: () => undefined,
    waitUntilSettled: slowly === 'the stored files' ? runSlowTask : async () => {},
  };
  const inheritance: Inheritance = {
    ...{ table, baseIds, ownership, requiredNames: [], runDir: folder.path, log: silentLogger },
    record: record as unknown as AgentRecord,
    storedFiles: storedFiles as unknown as StoredFiles,
    binaries: {} as Inheritance['binaries'],
  };
  return {
    table,
    baseIds,
    predecessor: predecessorWithEffects(inheritance),
    successor: successorWithEffects(inheritance),
  };
}

/** Starts the hand-over when requested, as the agent does. */
function startMachine(machine: AnyActorLogic) {
  const events: string[] = [];
  const parent = setup({ actors: { machine } }).createMachine({
    invoke: { id: 'machine', src: 'machine' },
    on: {
      '*': [
        {
          guard: ({ event }) => event.type === 'succession.due',
          actions: sendTo('machine', { type: 'succession.begin' }),
        },
        { actions: ({ event }) => events.push(event.type) },
      ],
    },
  });
  const actor = createActor(parent).start();
  onTestFinished(() => void actor.stop());
  const child = () => actor.getSnapshot().children.machine!;
  return { events, say: (event: AnyEventObject) => child().send(event) };
}

const [silentActor, unheard] = [
  fromCallback<LinkOrder, undefined>(() => {}),
  fromCallback<TakeoverConfirm, undefined>(() => {}),
];
const ready = { type: 'successor.ready', pid: 2 };

test('keeps its Envoys if the newer agent exits while the record is written', async () => {
  const { predecessor, table } = createAgent('the stored files');
  const { say } = startMachine(predecessor.provide({ actors: { link: silentActor } }));
  say(ready);
  await eventually('the record is being written', () => finishSlowTask !== undefined);
  say({ type: 'successor.lost', reason: '' });
  finishSlowTask!();
  await sleep(5);
  expect(table.isHandedOver).toBe(false);
});

test('leaves all Envoys to the next agent if resuming exceeds its limit', async () => {
  const { predecessor, table, baseIds } = createAgent('the ports');
  const { say, events } = startMachine(
    predecessor.provide({ actors: { link: silentActor }, delays: { resumeLimit: 20 } }),
  );
  say(ready);
  await eventually('it has given up', () => table.isHandedOver);
  await sleep(5);
  say({ type: 'successor.lost', reason: '' });
  await eventually('its time is over', () => events.includes('succession.done'));
  finishSlowTask!();
  await sleep(5);
  expect({ letsGo: table.isHandedOver, held: baseIds.held }).toEqual({ letsGo: true, held: false });
});

test('controls its Envoys again if resuming stays within the limit', async () => {
  const { predecessor, table, baseIds } = createAgent('nothing');
  const { say, events } = startMachine(predecessor.provide({ actors: { link: silentActor } }));
  say(ready);
  await eventually('it has given up', () => table.isHandedOver);
  await sleep(5);
  say({ type: 'successor.lost', reason: '' });
  await eventually('it has taken back', () => events.includes('succession.failed'));
  expect({ letsGo: table.isHandedOver, held: baseIds.held }).toEqual({ letsGo: false, held: true });
});

test('releases all base IDs of a newer agent that exceeds the claim limit', async () => {
  const { successor, baseIds } = createAgent('the ports');
  const { say, events } = startMachine(successor.provide({ actors: { link: unheard }, delays: { claimLimit: 20 } }));
  say({ type: 'predecessor.granted' });
  await eventually('its time is over', () => events.includes('succession.refused'));
  finishSlowTask!();
  await sleep(5);
  expect(baseIds.held).toBe(false);
});
