import { fromPromise } from 'xstate';
import { predecessorMachine } from '../../../machines/agent/agent-upgrade/predecessor.machine.ts';
import type { ClaimedIds } from '../../../machines/agent/envoy/adoption.ts';
import { SuccessionServer } from '../envoy/record/succession.ts';
import { type Inheritance, takeBackLimitMs, takeOver } from './agent-replacement.ts';

export function predecessorWithEffects(inheritance: Inheritance) {
  const { record, table, baseIds, ownership, storedFiles, requiredNames } = inheritance;
  const server = new SuccessionServer(record.directory, () => table.takeBack());
  return predecessorMachine.provide({
    actors: {
      link: server.link,
      writeRecord: fromPromise<void, undefined>(async ({ signal }) => {
        record.throwIfWriteFailed();
        await storedFiles.waitUntilSettled();
        // The hand-over timed out, or the newer agent has exited, so this agent continues.
        signal.throwIfAborted();
        for (const name of requiredNames)
          if (storedFiles.read(name) === undefined)
            throw new Error(`state file ${name} not written: check the disk and the permissions of the run directory`);
        table.handOver();
      }),
      giveUp: fromPromise<void, undefined>(async () => {
        record.throwIfWriteFailed();
        ownership.relinquish();
        baseIds.handOverAll();
      }),
      takeBack: fromPromise<ClaimedIds, undefined>(async ({ signal }) => {
        await server.killNewerAgent(takeBackLimitMs);
        signal.throwIfAborted();
        const takeoverResult = await takeOver(inheritance, signal, 'taken back');
        table.takeBack();
        return takeoverResult;
      }),
    },
  });
}
