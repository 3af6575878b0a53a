/** A replay uses the recorded causes to find the events that arrived while a machine was processing another event. */
import { expect, test } from 'vitest';
import { type AnyActorRef, type AnyStateMachine, assign, createActor, sendParent, sendTo, setup } from 'xstate';
import { createRecorder } from './recorder.ts';
import type { TraceRecord } from './trace.ts';

function recordsOf(machine: AnyStateMachine, drive: (root: AnyActorRef) => void = () => {}): TraceRecord[] {
  const records: TraceRecord[] = [];
  const recorder = createRecorder({ program: 'test' });
  recorder.observe((record) => records.push(record));
  const actor = createActor(machine, { id: 'root', inspect: recorder.inspect }).start();
  drive(actor);
  return records;
}

const eventTo = (to: string, type: string, records: readonly TraceRecord[]): TraceRecord =>
  records.find((record) => record.kind === 'event' && record.to === to && record.event.type === type)!;

test('an event sent with a delay has no recorded cause because its sender is idle when it arrives', async () => {
  const machine = setup({}).createMachine({
    entry: sendTo(({ self }) => self, { type: 'late' }, { delay: 1 }),
    on: { late: { actions: assign({ late: true }) } },
  });
  const records = recordsOf(machine);
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(eventTo('root', 'late', records)).not.toHaveProperty('cause');
});

test("the record of an actor's end has the parent's reason for stopping the actor as its cause, and the event that the actor was processing as `during`", () => {
  const child = setup({}).createMachine({
    on: { work: { actions: [sendParent({ type: 'enough' }), assign({ done: true })] } },
  });
  const machine = setup({ actors: { child } }).createMachine({
    initial: 'on',
    states: {
      on: {
        invoke: { id: 'child', src: 'child' },
        on: { enough: 'off', stop: 'off' },
      },
      off: {},
    },
  });
  const busyRecords = recordsOf(machine, (root) => root.getSnapshot().children.child.send({ type: 'work' }));
  const [work, enough] = [eventTo('child', 'work', busyRecords), eventTo('root', 'enough', busyRecords)];
  expect(busyRecords.find(({ kind }) => kind === 'stop')).toMatchObject({ cause: enough.seq, during: work.seq });

  const idle = recordsOf(machine, (root) => root.send({ type: 'stop' }));
  const end = idle.find(({ kind }) => kind === 'stop');
  expect(end).toMatchObject({ actor: 'child', cause: eventTo('root', 'stop', idle).seq });
  expect(end).not.toHaveProperty('during');
});
