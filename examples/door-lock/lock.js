/** Records a sequence of the lock: `node lock.js`, then `chartpilot visualize lock.trace`. */
import { setTimeout as sleep } from 'node:timers/promises';
import { recordToFile } from 'chartpilot/record/node';
import { createActor } from 'xstate';
import { lockMachine } from './lock.machine.js';

const recording = recordToFile('lock.trace', { program: 'door lock', machines: [lockMachine] });
const lock = createActor(lockMachine, { id: 'lock', input: { openMs: 200 }, inspect: recording.inspect }).start();

lock.send({ type: 'code.rejected', at: 'front door' });
lock.send({ type: 'code.accepted' });
await sleep(100);
lock.send({ type: 'door.closed' });
await sleep(100);
lock.send({ type: 'code.accepted' });
await sleep(400);
lock.stop();
await recording.close();
