/** Tests of the restart's machine: its supervisor and the epochs are real machines with the effects of a host. */
import type { RestartInput } from '../../machines/agent/envoy/restart.machine.ts';
import type { GeneratedTest, Step } from '../../src/debugger/generate/suite.ts';
import { stepLabel } from '../../src/debugger/generate/suite.ts';
import type { Driver } from './driver.ts';
import type { HostKind } from './host.ts';
import { type StepTriggers, sessionOf } from './session.ts';
import { Supervised } from './supervised.ts';

/** Longer than the parent-shutdown time. */
const parentOverdueMs = 120_000;

export function restartDriver(kind: HostKind): Driver {
  return {
    name: kind.name,
    cannot: impossible,
    begin: (test, input) =>
      Supervised.begin(kind, {}, async (supervised) => {
        await beginRestart(supervised, test, input as RestartInput);
        const { company, host } = supervised;
        return sessionOf(company, test, { ...waysOf(supervised), limit: kind.limit, end: () => host.close() });
      }),
  };
}

/** Reason why no supervisor sends the events, as far as the steps show. */
function impossible({ steps }: GeneratedTest): string | undefined {
  const labels = steps.map((testStep) => stepLabel(testStep.do));
  if (labels[0] === 'child.not-live') return 'nobody answers who was not asked';
  if (labels.includes('parent.lost') && labels.includes('serving.lost'))
    return 'who needs its parent has no other Envoy';
  return undefined;
}

/** Starts a candidate that becomes live when the test orders it. */
async function beginRestart(
  supervised: Supervised,
  { steps }: GeneratedTest,
  { isBesideServing, hasNoParent, isOutdated }: RestartInput,
): Promise<void> {
  const { company, host } = supervised;
  const labels = steps.map((testStep) => stepLabel(testStep.do));
  const desiredChange = steps.map((testStep) => testStep.do).find((step) => stepLabel(step) === 'desired.changed');
  const becomesOutdated = desiredChange?.kind === 'event' && desiredChange.event.isOutdated === true;
  if (isBesideServing && (becomesOutdated || (hasNoParent && labels.includes('serving.lost'))))
    await startReplacement(supervised);
  else if (isBesideServing) await startChild(supervised);
  else if (
    labels.some((label) => label.startsWith('parent.')) ||
    (desiredChange !== undefined && !becomesOutdated && !isOutdated)
  ) {
    await startSecondChild(supervised);
  } else {
    host.holdBack();
    company.follow('restart');
    supervised.begin();
  }
  await supervised.initializes(supervised.newest!.name);
  // No epoch starts with an outdated configuration, so it becomes outdated afterwards.
  if (isOutdated) supervised.changeConfiguration();
}

/** Starts an epoch while another one serves. */
async function startChild(supervised: Supervised): Promise<void> {
  await supervised.serve();
  supervised.host.holdBack();
  supervised.company.follow('restart');
  supervised.changeConfiguration();
}

/** Starts an epoch while another one runs whose parent exited too early. */
async function startReplacement(supervised: Supervised): Promise<void> {
  await supervised.handOver();
  supervised.host.holdBack();
  supervised.company.follow('restart');
  await supervised.crash('epoch-0');
}

/** Starts a second child of a draining parent whose first child has crashed. */
async function startSecondChild(supervised: Supervised): Promise<void> {
  await supervised.handOver();
  supervised.host.holdBack();
  supervised.company.follow('restart');
  await supervised.crash('epoch-1');
}

function waysOf(supervised: Supervised): Pick<StepTriggers, 'trigger' | 'ignores' | 'finalDeviation'> {
  const { company, host } = supervised;
  const endOf = (name: string | undefined): Promise<void> | void =>
    name === undefined ? undefined : host.end(name, 'by a signal');
  return {
    trigger(step: Step) {
      if (step.kind === 'delay') return company.pass(step.ms);
      if (step.kind !== 'event') return;
      switch (step.event.type) {
        case 'desired.changed': {
          const { newest } = supervised;
          // A child is never outdated, because it needs its parent.
          const isWhatItHas = step.event.isOutdated === false && newest?.epoch === 0;
          return supervised.changeConfiguration(isWhatItHas ? newest.digest : undefined);
        }
        case 'serving.lost':
          return endOf(supervised.serving?.name);
        case 'parent.lost':
          return endOf(supervised.epochs.find(({ phase }) => phase === 'leaving')?.name);
        case 'parent.overdue':
          return company.pass(parentOverdueMs);
        case 'child.ended': {
          const { newest } = supervised;
          return newest === undefined ? undefined : host.end(newest.name, 'killed');
        }
      }
    },
    ignores: () => false,
    async finalDeviation(state) {
      const { newest, serving } = supervised;
      if (
        /^(aborting|calling off)$/.test(state) &&
        newest !== undefined &&
        !(await supervised.haveExited([newest.name], 'killed'))
      ) {
        return `${newest.name} is there`;
      }
      if (serving !== undefined && !host.running().includes(serving.name)) return `${serving.name} is gone`;
      return undefined;
    },
  };
}
