/**
 * Tests of the supervisor's machine: its epochs are real machines with the effects of a host, other peers are scripted.
 */
import type { AnyActorRef } from 'xstate';
import type { SupervisorContext, SupervisorInput } from '../../machines/agent/envoy/supervisor.machine.ts';
import type { GeneratedTest, Step } from '../../src/debugger/generate/suite.ts';
import { stepLabel } from '../../src/debugger/generate/suite.ts';
import type { Driver } from './driver.ts';
import { beginOn, type Host, type HostKind } from './host.ts';
import { type Limit, pollWithin } from './limit.ts';
import { Company, type StepTriggers, sessionOf } from './session.ts';
import { supervisorWith } from './supervised.ts';

/** Just below the parent-shutdown time, so that a parent exits on time. */
const parentDueMs = 59_000;
const healthyMs = 60_000;

export function supervisorDriver(kind: HostKind, cannot: (test: GeneratedTest) => string | undefined): Driver {
  return {
    name: kind.name,
    cannot: (test) => impossible(test) ?? cannot(test),
    begin: (test, input) =>
      beginOn(kind, { bootstrap: 'good', spawns: true, live: true }, async (host) => {
        await host.prepare();
        const { settings } = input as SupervisorInput;
        const supervisorInput = { settings: { ...settings, ...host.adminPorts }, baseIds: [...host.baseIds] };
        const company = new Company(supervisorWith(host), 'supervisor', supervisorInput, ['status']);
        return sessionOf(company, test, {
          ...waysOf(company, host, kind.limit),
          limit: kind.limit,
          end: () => host.close(),
        });
      }),
  };
}

/** Reason why no host can produce the events, as far as the steps show. */
function impossible({ steps }: GeneratedTest): string | undefined {
  let hasStarted = false;
  const alive = new Set<unknown>();
  for (const { do: step } of steps) {
    if (step.kind !== 'event') continue;
    const { type, name } = step.event;
    if (type === 'start.granted') hasStarted = true;
    if (name === undefined) continue;
    if (!hasStarted || (!alive.has(name) && /^epoch\.(healthy|overdue|drained|drain-failed)$/.test(type))) {
      return 'an epoch that was not started, or is not live, does not report this';
    }
    if (type === 'epoch.live') alive.add(name);
  }
  return undefined;
}

function isPreparing({ machine }: Company): boolean {
  const { children } = machine.getSnapshot() as { children: Record<string, AnyActorRef | undefined> };
  return Object.values(children).some((child) => child?.getSnapshot()?.value === 'preparing');
}

type EpochEvent = Step & { kind: 'event' };

function waysOf(company: Company, host: Host, limit: Limit): Pick<StepTriggers, 'trigger' | 'ignores'> {
  const context = (): SupervisorContext => company.machine.getSnapshot().context as SupervisorContext;
  /** Envoys are prepared in real time, so virtual time waits for them. */
  const pass = async (ms: number): Promise<void> => {
    await pollWithin(limit, () => (isPreparing(company) ? undefined : true));
    await company.pass(ms);
  };
  const phaseOf = (name: string): string | undefined => context().epochs.find((epoch) => epoch.name === name)?.phase;
  const prepareRefusal = async (laterSteps: readonly Step[]): Promise<void> => {
    const next = laterSteps.find(
      (step) => step.kind === 'event' && /^epoch\.(live|failed|exited)$/.test(step.event.type),
    );
    const servingName = context().epochs.findLast(({ phase }) => phase === 'live')?.name;
    if (next?.kind !== 'event' || next.event.refusedByParent !== true || servingName === undefined) return;
    const repair = laterSteps.find((step) => 'effect' in step && step.effect === 'repair');
    await host.refuseNext(servingName, repair?.kind !== 'error');
  };
  /** A cancelled restart ends when its Envoy has exited. */
  const endNewest = async (): Promise<void> => {
    const newest = context().epochs.at(-1);
    if (newest !== undefined) await host.end(newest.name, 'on request');
  };
  const aboutEpoch = async ({ event }: EpochEvent): Promise<void> => {
    const name = event.name as string;
    const phase = phaseOf(name);
    switch (event.type) {
      case 'epoch.live':
        return host.live(name);
      case 'epoch.healthy':
        return pass(healthyMs);
      case 'epoch.overdue':
        return pass(2 * healthyMs);
      case 'epoch.exited':
        // A parent that exits too early is a failure.
        if (phase === 'leaving') await pass(parentDueMs);
        return host.end(name, 'on request');
      case 'epoch.failed':
        // A child that its parent rejects exits by itself.
        return event.refusedByParent === true ? undefined : host.end(name, 'by a signal');
    }
  };
  return {
    async trigger(step, laterSteps) {
      if (step.kind === 'delay') return pass(step.ms);
      if (step.kind === 'done' && step.effect === 'restart') return endNewest();
      if (step.kind !== 'event') return;
      const { type } = step.event;
      if (type === 'start.granted') return;
      // The restart and shutdown machines send these events at their own deadlines.
      if (/^(child|epochs)\./.test(type)) {
        await pass(2 * healthyMs);
        // A last probe precedes an abort, and SIGTERM precedes SIGKILL.
        if (type === 'child.abort' || type === 'epochs.kill') await pass(2 * healthyMs);
        return;
      }
      if (type.startsWith('epoch.')) return aboutEpoch(step);
      if (laterSteps[0] !== undefined && stepLabel(laterSteps[0]) === 'start.granted') await prepareRefusal(laterSteps);
      company.machine.send(step.event);
    },
    // Reports of other epochs, and the end of their machines.
    ignores: ({ type }, step) =>
      (type === 'epoch.exited' && step.kind === 'done') ||
      /^(epoch\.(started|waiting|drained|drain-failed|not-live)|child\.probe|epochs\.(drain|terminate|kill))$/.test(
        type,
      ) ||
      /^xstate\.done\.actor\.(restart|shutdown)$/.test(type) ||
      /^xstate\.(done|snapshot)\.actor\.epoch-/.test(type),
  };
}
