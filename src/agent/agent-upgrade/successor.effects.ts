import { fromPromise } from 'xstate';
import { type SuccessorClaim, successorMachine } from '../../../machines/agent/agent-upgrade/successor.machine.ts';
import type { ClaimedIds } from '../../../machines/agent/envoy/adoption.ts';
import { withHintInMessage } from '../../runtime/errors.ts';
import { successorLink } from '../envoy/record/succession.ts';
import { type Inheritance, takeOver } from './agent-replacement.ts';

export function successorWithEffects(inheritance: Inheritance) {
  const { record, table } = inheritance;
  return successorMachine.provide({
    actors: {
      link: successorLink(record.directory, () => table.takeBack()),
      claim: fromPromise<ClaimedIds, SuccessorClaim>(({ input, signal }) =>
        withHintInMessage(() => takeOver(inheritance, signal, input.isGranted ? 'granted' : undefined)),
      ),
    },
  });
}
