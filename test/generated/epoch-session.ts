/** Tests of the epoch's machine with the effects of a host; its orders arrive as from its supervisor. */
import type { AnyEventObject } from 'xstate';
import { type EpochPhase, epochMachine, type PreparedEpoch } from '../../machines/agent/envoy/epoch.machine.ts';
import type { GeneratedTest, Step } from '../../src/debugger/generate/suite.ts';
import { stepLabel } from '../../src/debugger/generate/suite.ts';
import type { Driver } from './driver.ts';
import { beginOn, type EnvoyEnd, type Host, type HostKind, type HostPlan } from './host.ts';
import { Company, type StepTriggers, sessionOf } from './session.ts';

const name = 'epoch-0';

/**
 * @param cannot reasons of this kind of host, in addition to those of all hosts
 * @param epoch a replacement of the epoch's machine
 */
export function epochDriver(
  kind: HostKind,
  cannot: (labels: readonly string[]) => string | undefined = () => undefined,
  epoch = epochMachine,
): Driver {
  return {
    name: kind.name,
    cannot: (test) => impossible(labelsOf(test)) ?? cannot(labelsOf(test)),
    begin(test, input) {
      const labels = labelsOf(test);
      const isRefused = labels[0] === 'prepare fails';
      const plan: HostPlan = {
        bootstrap: isRefused ? 'refused' : bootstrapOf(test.steps[0]?.do),
        spawns: !labels.includes('process.failed'),
        live: labels.includes('probe.passed'),
      };
      return beginOn(kind, plan, async (host) => {
        const machine = epoch.provide({ actors: host.epochEffects });
        // A separate process validates a bootstrap, so it is configured only if validation must fail.
        const epochInput = {
          ...(input as object),
          baseId: host.baseIds[0],
          adminPort: host.adminPorts.adminPort,
          validate: isRefused,
          certificates: host.certificates,
        };
        const company = new Company(machine, name, epochInput);
        return sessionOf(company, test, {
          ...waysOf(company, host),
          limit: kind.limit,
          end: () => host.close(),
        });
      });
    },
  };
}

/** The result of the preparation, according to the first step. */
function bootstrapOf(step: Step | undefined): HostPlan['bootstrap'] {
  if (step?.kind !== 'done' || step.effect !== 'prepare') return 'good';
  const [resultKind] = Object.keys(step.output as PreparedEpoch);
  return resultKind === 'outdated' || resultKind === 'unwritable' || resultKind === 'unreachable' ? resultKind : 'good';
}

const labelsOf = ({ steps }: GeneratedTest): string[] => steps.map((testStep) => stepLabel(testStep.do));

function impossible(labels: readonly string[]): string | undefined {
  const exit = labels.indexOf('process.exited');
  const waitingIndex = labels.indexOf('probe.waiting');
  if (waitingIndex >= 0 && !labels.slice(0, waitingIndex).some((label) => /^after (firstNotice|notice)$/.test(label))) {
    return 'nobody says what it waits for without being asked';
  }
  if (exit >= 0 && !labels.includes('process.spawned')) return 'a process that was never spawned cannot exit';
  return undefined;
}

function waysOf(company: Company, host: Host): Pick<StepTriggers, 'trigger' | 'ignores'> {
  let childAttached = false;
  const order = async (step: Step & { kind: 'event' }, laterSteps: readonly Step[]): Promise<void> => {
    const { type } = step.event;
    if (!isLive(company)) return company.machine.send(step.event);
    if (type === 'epoch.drain' || type === 'epoch.retire') await host.drain(name, drainMeets(laterSteps));
    // A parent exits because its child shuts it down.
    if (
      type === 'epoch.supersede' &&
      !childAttached &&
      laterSteps.some((laterStep) => stepLabel(laterStep) === 'process.exited')
    ) {
      childAttached = true;
      await host.attachChild(name);
    }
    company.machine.send(step.event);
  };
  return {
    trigger(step, laterSteps) {
      if (step.kind === 'delay') return company.pass(step.ms);
      if (step.kind !== 'event') return step.effect === 'prepare' ? host.prepare() : undefined;
      switch (step.event.type) {
        case 'process.spawned':
        case 'process.failed':
          return;
        case 'process.exited':
          return host.end(name, endOf(company, step.event));
        case 'probe.passed':
          return host.live(name);
        case 'probe.waiting':
          return host.waits(name);
        case 'probe.incomplete':
          return host.lacks(name);
        default:
          // Other orders are sent without waiting, so that they can cross an event.
          return /^epoch\.(drain|retire|supersede)$/.test(step.event.type)
            ? order(step, laterSteps)
            : company.machine.send(step.event);
      }
    },
    // The exit of a process arrives before its pending response. A wait may complete at any time.
    ignores: ({ type }, step) =>
      type === 'probe.waiting' || (type === 'xstate.error.actor.drain' && stepLabel(step) === 'process.exited'),
  };
}

/** Result of drain orders, according to the next steps of the test. */
function drainMeets(laterSteps: readonly Step[]): 'a response' | 'an error' | 'no response' {
  const drainStep = laterSteps.find((step) => 'effect' in step && step.effect === 'drain');
  if (drainStep === undefined) return 'no response';
  return drainStep.kind === 'done' ? 'a response' : 'an error';
}

const isLive = ({ machine }: Company): boolean =>
  (machine.getSnapshot() as { hasTag(tag: EpochPhase): boolean }).hasTag('live');

/** A process that was ordered to exit exits normally; a parent that its child shuts down may also crash. */
function endOf({ machine }: Company, { code, tookOverWithinMs }: AnyEventObject): EnvoyEnd {
  const snapshot = machine.getSnapshot() as { matches(state: unknown): boolean };
  if (snapshot.matches({ running: 'ending' }) || snapshot.matches({ running: { retiring: 'terminating' } })) {
    return 'on request';
  }
  // An epoch that was observed live has taken over, so it needs no later check.
  if (tookOverWithinMs !== undefined && snapshot.matches({ running: 'initializing' })) return 'after it took over';
  if (code !== 0) return 'by a signal';
  return snapshot.matches({ running: 'draining parent' }) ? 'on request' : 'with code 0';
}
