import { fromCallback, fromPromise } from 'xstate';
import {
  type ElectedWriterInput,
  electedWriterMachine,
  type WriteOutcome,
  type WriteRun,
} from '../../../machines/discovery/election/elected-writer.machine.ts';
import type { DutyDue, LeaseName } from '../../../machines/discovery/election/leader-protocol.ts';

export interface ElectedDuties {
  readonly watch: (lease: LeaseName, onDue: (event: DutyDue) => void) => () => void;
  readonly write: (run: WriteRun) => Promise<WriteOutcome>;
}

export function electedWriterWithEffects(duties: ElectedDuties, chart = electedWriterMachine) {
  return chart.provide({
    actors: {
      watchDuty: fromCallback<{ type: never }, ElectedWriterInput>(({ input, sendBack }) =>
        duties.watch(input.lease, sendBack),
      ),
      writeDuty: fromPromise<WriteOutcome, WriteRun>(({ input }) => duties.write(input)),
    },
  });
}
