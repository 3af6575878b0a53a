/** Effects of the chart `predecessor`, in the older agent. */
import { fromPromise } from 'xstate';
import type { ClaimedIds } from '../../../machines/agent/envoy/adoption.ts';
import { predecessorMachine } from '../../../machines/agent/replacement/predecessor.machine.ts';
import { SuccessionServer } from '../envoy/record/succession.ts';
import { type Inheritance, takeBackLimitMs, takeWhatRuns } from './agent-replacement.ts';

export function predecessorWithEffects(inheritance: Inheritance) {
  const { record, table, baseIds, ownership, told, needed } = inheritance;
  const server = new SuccessionServer(record.directory, () => table.keep());
  return predecessorMachine.provide({
    actors: {
      link: server.link,
      writeRecord: fromPromise<void, undefined>(async ({ signal }) => {
        record.require();
        await told.settled();
        // The hand-over timed out, or the newer agent has exited, so this agent continues.
        signal.throwIfAborted();
        for (const name of needed)
          if (told.read(name) === undefined)
            throw new Error(`state file ${name} not written: check the disk and the permissions of the run directory`);
        table.letGo();
      }),
      giveUp: fromPromise<void, undefined>(async () => {
        record.require();
        ownership.giveUp();
        baseIds.letGoAll();
      }),
      takeBack: fromPromise<ClaimedIds, undefined>(async ({ signal }) => {
        await server.endNewcomer(takeBackLimitMs);
        signal.throwIfAborted();
        const claimed = await takeWhatRuns(inheritance, signal, 'taken back');
        table.keep();
        return claimed;
      }),
    },
  });
}
