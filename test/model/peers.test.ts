/** An actor addressed by name accepts its declared events; anything else does not compile. */
import { expect, test } from 'vitest';
import { createActor, sendTo, setup } from 'xstate';
import { peersOf } from '../../machines/peers.ts';

type ReadinessEvent = { type: 'readiness.requested' };
type ConfigEvent = { type: 'config.changed'; digest: string };

const peer = peersOf<{ status: ReadinessEvent; supervisor: ConfigEvent }>();

test('an event is sent to the actor with the given system ID in the same system', () => {
  const receivedTypes: string[] = [];
  const status = setup({ types: { events: {} as ReadinessEvent } }).createMachine({
    on: { 'readiness.requested': { actions: ({ event }) => receivedTypes.push(event.type) } },
  });
  const system = setup({ actors: { status } }).createMachine({
    invoke: { src: 'status', systemId: 'status' },
    on: { ask: { actions: sendTo(peer('status'), { type: 'readiness.requested' }) } },
  });
  createActor(system).start().send({ type: 'ask' });
  expect(receivedTypes).toEqual(['readiness.requested']);
});

test('an event of another actor or an unknown name does not compile', () => {
  // @ts-expect-error `status` does not receive configuration events
  expect(sendTo(peer('status'), { type: 'config.changed', digest: '' })).toBeTypeOf('function');
  // @ts-expect-error there is no such actor
  expect(peer('statuss')).toBeTypeOf('function');
});
