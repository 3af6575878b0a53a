/** Tests of the shutdown's machine: its supervisor and the epochs are real machines with the effects of a host. */
import type { ShutdownInput } from '../../machines/agent/envoy/shutdown.machine.ts';
import { type GeneratedTest, type Step, stepLabel } from '../../src/debugger/generate/suite.ts';
import type { Driver } from './driver.ts';
import type { Host, HostKind } from './host.ts';
import { type StepTriggers, sessionOf } from './session.ts';
import { Supervised } from './supervised.ts';

/** Admin ports of the primary and the spare base ID in the samples. */
const sampledAdminPorts = [15_000, 15_001];

export function shutdownDriver(kind: HostKind): Driver {
  return {
    name: kind.name,
    cannot: impossible,
    begin(test, input) {
      const shutdownInput = input as ShutdownInput;
      const { waitsForRequests, terminationDrainMs, minimumDrainMs, stopLimitMs } = shutdownInput;
      const limits = { terminationDrainMs, minimumDrainMs, stopLimitMs };
      const settings = { ...limits, exitOnZeroActiveConnections: waitsForRequests };
      return Supervised.begin(kind, settings, async (supervised) => {
        const { company, host } = supervised;
        await beginEnd(supervised, test, shutdownInput);
        const ways = { ...waysOf(supervised), limit: kind.limit, end: () => host.close() };
        const session = sessionOf(company, test, ways);
        return { ...session, take: (step) => session.take(withAdminPort(step, host.adminPorts)) };
      });
    },
  };
}

/** Reason why no supervisor sends the events, as far as the steps show. */
function impossible({ steps }: GeneratedTest): string | undefined {
  const first = steps[0];
  if (first === undefined || stepLabel(first.do) !== 'after stopLimit') return undefined;
  return 'with nobody to drain all are killed at once, and gone or given up before that';
}

function withAdminPort(step: Step, { adminPort, spareAdminPort }: Host['adminPorts']): Step {
  if (step.kind !== 'event' || typeof step.event.adminPort !== 'number') return step;
  const portIndex = sampledAdminPorts.indexOf(step.event.adminPort);
  return { ...step, event: { ...step.event, adminPort: [adminPort, spareAdminPort][portIndex] } };
}

const isCount = (step: Step): boolean => 'effect' in step && step.effect === 'count';

/** Number of requests that Envoy must report. */
const requestsIn = (count: Step): number | undefined => (count.kind === 'done' ? (count.output as number) : undefined);

async function beginEnd(
  supervised: Supervised,
  { steps }: GeneratedTest,
  { now, nothingToDrain }: ShutdownInput,
): Promise<void> {
  const { company, host } = supervised;
  const changes = steps
    .map((testStep) => testStep.do)
    .filter((step) => step.kind === 'event' && 'adminPort' in step.event);
  if (nothingToDrain) {
    host.holdBack();
    supervised.begin();
    await supervised.initializes('epoch-0');
  } else if (changes.some((step) => step.kind === 'event' && step.event.nothingToDrain === false)) {
    // A change of the serving epoch may leave an Envoy with the other base ID.
    await supervised.handOver();
    await supervised.crash('epoch-0');
    await supervised.becomesLive('epoch-0b');
  } else {
    await supervised.serve();
  }
  // A draining Envoy accepts no new requests.
  const count = steps.map((testStep) => testStep.do).find(isCount);
  if (count?.kind === 'done') await host.requests('epoch-0', requestsIn(count));
  company.follow('shutdown');
  company.machine.send({ type: now ? 'supervisor.stop-now' : 'supervisor.stop', reason: 'SIGTERM' });
}

function waysOf(supervised: Supervised): Pick<StepTriggers, 'trigger' | 'ignores' | 'finalDeviation'> {
  const { company, host } = supervised;
  return {
    async trigger(step, [next]) {
      if (next !== undefined && isCount(next)) await host.requests('epoch-0', requestsIn(next));
      if (step.kind === 'delay') return company.pass(step.ms);
      if (step.kind !== 'event') return;
      if (step.event.type === 'stop.now') company.machine.send({ type: 'supervisor.stop-now', reason: 'SIGTERM' });
      // The replaced epoch exits first.
      if (step.event.type === 'epochs.changed') await host.end(supervised.epochs[0]!.name, 'by a signal');
    },
    ignores: () => false,
    async finalDeviation(state) {
      if (!/^(ending|killing)$/.test(state)) return undefined;
      const names = supervised.epochs.map(({ name }) => name);
      return (await supervised.haveExited(names, state === 'ending' ? 'on request' : 'killed'))
        ? undefined
        : `${host.running().join(', ')} is there`;
    },
  };
}
